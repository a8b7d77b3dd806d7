#include "tests/runtime/cache/toy_host.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "doctest/doctest.h"

namespace foldkv::test {
namespace {

std::vector<float> normal_numbers(int64_t count, uint32_t seed, double scale) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, scale);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(normal(random));
  return numbers;
}

TensorView matrix(const std::vector<float>& numbers, int64_t rows, int64_t columns) {
  return {reinterpret_cast<const std::byte*>(numbers.data()), NumberFormat::kF32, rows, columns, columns};
}

MutableTensorView writable(std::vector<float>& numbers, int64_t rows, int64_t columns) {
  return {reinterpret_cast<std::byte*>(numbers.data()), NumberFormat::kF32, rows, columns, columns};
}

// rows x inner times (columns x inner)^T
std::vector<float> product(const std::vector<float>& x, const std::vector<float>& weight, int64_t inner) {
  const auto rows = std::ssize(x) / inner;
  const auto columns = std::ssize(weight) / inner;
  std::vector<float> result(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0.0;
      for (int64_t i = 0; i < inner; ++i) {
        sum += double{x[static_cast<size_t>(row * inner + i)]} * weight[static_cast<size_t>(column * inner + i)];
      }
      result[static_cast<size_t>(row * columns + column)] = static_cast<float>(sum);
    }
  }
  return result;
}

void add_to_rows(std::vector<float>& rows, const std::vector<float>& vector) {
  for (size_t i = 0; i < rows.size(); ++i) rows[i] += vector[i % vector.size()];
}

RotationRules toy_rotation(const ToyShape& shape) {
  RotationRules rotation;
  rotation.pairing = shape.pairing;
  for (int64_t pair = 0; pair < shape.head_size / 2; ++pair) {
    rotation.inverse_frequencies.push_back(
        std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(shape.head_size)));
  }
  return rotation;
}

LayerRules toy_layer(const ToyShape& shape, int64_t layer) {
  LayerRules rules;
  rules.query_heads = shape.query_heads;
  rules.kv_heads = shape.kv_heads;
  rules.head_size = shape.head_size;
  if (shape.head_size > 1) rules.rotation = toy_rotation(shape);
  rules.window = layer % 2 == 1 ? shape.window : 0;
  rules.attention_scale = 1.0 / std::sqrt(static_cast<double>(shape.head_size));
  rules.soft_cap = shape.soft_cap;
  rules.norm_epsilon = 1e-6;
  if (shape.norms) {
    rules.query_norm = normal_numbers(shape.head_size, static_cast<uint32_t>(500 + layer), 1.0);
    rules.key_norm = normal_numbers(shape.head_size, static_cast<uint32_t>(600 + layer), 1.0);
  }
  return rules;
}

// Matrices of layer l are at weights[l * 8 + index].
enum WeightIndex { kQuery, kKey, kValue, kOutput, kQueryBias, kKeyBias, kValueBias, kOutputBias, kWeightCount };

}  // namespace

ToyHost::ToyHost(const ToyShape& shape, uint32_t seed) : shape_(shape) {
  ModelDescription description;
  for (int64_t layer = 0; layer < shape.layers; ++layer) description.layers.push_back(toy_layer(shape, layer));
  description.hidden_size = shape.hidden;
  description.name = "toy";
  auto model = Model::create(std::move(description));
  REQUIRE_MESSAGE(model.ok(), std::string(model.status().message()));
  model_ = *model;
  if (shape.hidden == 0) return;
  const int64_t hidden = shape.hidden;
  const double scale = 1.0 / std::sqrt(static_cast<double>(hidden));
  weights_.reserve(static_cast<size_t>(shape.layers * kWeightCount));
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto base = static_cast<uint32_t>(seed * 1000 + static_cast<uint32_t>(layer) * kWeightCount);
    const int64_t sizes[kWeightCount] = {shape.query_width() * hidden,
                                         shape.key_width() * hidden,
                                         shape.key_width() * hidden,
                                         shape.query_width() * hidden,
                                         shape.query_width(),
                                         shape.key_width(),
                                         shape.key_width(),
                                         hidden};
    for (int index = 0; index < kWeightCount; ++index) {
      const double size = index == kKeyBias ? 30.0 : index > kOutput ? 1.0 : scale * 2.0;
      weights_.push_back(normal_numbers(sizes[index], base + static_cast<uint32_t>(index), size));
    }
    const auto* own = &weights_[static_cast<size_t>(layer * kWeightCount)];
    LayerWeights views;
    views.query = matrix(own[kQuery], shape.query_width(), hidden);
    views.key = matrix(own[kKey], shape.key_width(), hidden);
    views.value = matrix(own[kValue], shape.key_width(), hidden);
    views.output = matrix(own[kOutput], hidden, shape.query_width());
    if (shape.biases) {
      views.query_bias = matrix(own[kQueryBias], 1, shape.query_width());
      views.key_bias = matrix(own[kKeyBias], 1, shape.key_width());
      views.value_bias = matrix(own[kValueBias], 1, shape.key_width());
      views.output_bias = matrix(own[kOutputBias], 1, hidden);
    }
    const Status bound = model_->bind_weights(layer, views);
    REQUIRE_MESSAGE(bound.ok(), std::string(bound.message()));
  }
}

ToyTokens ToyHost::tokens(int64_t count, uint32_t seed) const {
  // A few factors shared by all layers, plus noise of each layer: what makes cross-layer latents possible.
  const int64_t factors = 6;
  const std::vector<float> shared = normal_numbers(count * factors, seed, 1.0);
  ToyTokens tokens;
  tokens.count = count;
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    const auto mix = static_cast<uint32_t>(9000 + layer * 10);
    const auto noise = static_cast<uint32_t>(seed * 7919 + static_cast<uint32_t>(layer) * 10);
    const auto rows = [&](int64_t width, uint32_t part) {
      std::vector<float> result = product(shared, normal_numbers(width * factors, mix + part, 0.6), factors);
      const std::vector<float> own = normal_numbers(count * width, noise + part, 0.25);
      for (size_t i = 0; i < result.size(); ++i) result[i] += own[i];
      return result;
    };
    if (shape_.hidden > 0) {
      const auto* own = &weights_[static_cast<size_t>(layer * kWeightCount)];
      tokens.hidden.push_back(rows(shape_.hidden, 0));
      tokens.query.push_back(product(tokens.hidden.back(), own[kQuery], shape_.hidden));
      tokens.key.push_back(product(tokens.hidden.back(), own[kKey], shape_.hidden));
      tokens.value.push_back(product(tokens.hidden.back(), own[kValue], shape_.hidden));
      if (shape_.biases) {
        add_to_rows(tokens.query.back(), own[kQueryBias]);
        add_to_rows(tokens.key.back(), own[kKeyBias]);
        add_to_rows(tokens.value.back(), own[kValueBias]);
      }
      continue;
    }
    tokens.query.push_back(rows(shape_.query_width(), 1));
    tokens.key.push_back(rows(shape_.key_width(), 2));
    tokens.value.push_back(rows(shape_.key_width(), 3));
    for (float& number : tokens.key.back()) number += static_cast<float>(shape_.key_offset);
  }
  return tokens;
}

const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names = {"reference", "cpu"};
  return names;
}

std::shared_ptr<Runtime> open_runtime(const RuntimeChoice& choice) {
  backend::DeviceOptions options;
  options.threads = choice.threads;
  options.deterministic = choice.deterministic;
  const backend::Plugin& plugin = choice.backend == "cpu" ? backend::cpu_plugin() : backend::reference_plugin();
  auto runtime = Runtime::create(plugin, options, choice.budget, choice.hooks);
  REQUIRE_MESSAGE(runtime.ok(), std::string(runtime.status().message()));
  return *runtime;
}

std::shared_ptr<Sequence> make_sequence(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                        const std::shared_ptr<const Profile>& profile, const SequencePolicy& policy) {
  auto sequence = Sequence::create(runtime, host.model(), profile, policy);
  REQUIRE_MESSAGE(sequence.ok(), std::string(sequence.status().message()));
  return *sequence;
}

std::shared_ptr<const Profile> calibrate(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                         const ProfileChoice& choice, int64_t token_count) {
  CalibratorOptions options;
  const auto layer_count = static_cast<int32_t>(host.shape().layers - choice.exact_layers);
  for (int32_t first = 0; first < layer_count; first += static_cast<int32_t>(choice.layers_per_group)) {
    // Layers with a window may not share latents with others: each such layer is a group of its own.
    LayerGroup group;
    for (int32_t layer = first; layer < std::min(first + static_cast<int32_t>(choice.layers_per_group), layer_count);
         ++layer) {
      if (host.model()->layer(layer).window > 0) {
        options.groups.push_back({layer});
      } else {
        group.push_back(layer);
      }
    }
    if (!group.empty()) options.groups.push_back(std::move(group));
  }
  auto calibrator = Calibrator::create(runtime->shared_backend(), host.model(), options);
  REQUIRE_MESSAGE(calibrator.ok(), std::string(calibrator.status().message()));
  const ToyTokens tokens = host.tokens(token_count, 4711);
  // Through a sequence, so that norms are applied as they will be in use.
  const auto sequence = make_sequence(runtime, host, nullptr, {.format = NumberFormat::kF32});
  REQUIRE(sequence->attach(*calibrator).ok());
  (void)feed_in_chunks(runtime, host, sequence, tokens, 0, token_count, 128);
  SolveOptions solve;
  solve.bits = choice.bits;
  solve.latent_width = choice.latent_width;
  solve.scale_group = choice.scale_group;
  solve.centred = !choice.uncentred;
  solve.rotate = choice.rotate;
  if (choice.correction_rank > 0) solve.correction = {choice.correction_rank, 4, 1, 99};
  auto profile = (*calibrator)->solve(solve);
  REQUIRE_MESSAGE(profile.ok(), std::string(profile.status().message()));
  return std::make_shared<const Profile>(std::move(*profile));
}

void gather_input(const ToyHost& host, const std::vector<ToyFeed>& feeds, int64_t layer, const StepRules& rules,
                  GatheredInput& gathered) {
  const ToyShape& shape = host.shape();
  int64_t rows = 0;
  const auto append = [&](std::vector<float>& target, const std::vector<std::vector<float>>& source,
                          const ToyFeed& feed, int64_t width) {
    if (source.empty()) return;
    const auto begin = source[static_cast<size_t>(layer)].begin() + feed.first * width;
    target.insert(target.end(), begin, begin + feed.count * width);
  };
  for (const ToyFeed& feed : feeds) {
    append(gathered.hidden, feed.tokens->hidden, feed, shape.hidden);
    append(gathered.query, feed.tokens->query, feed, shape.query_width());
    append(gathered.key, feed.tokens->key, feed, shape.key_width());
    append(gathered.value, feed.tokens->value, feed, shape.key_width());
    rows += feed.count;
  }
  const int64_t width = rules.projected_output ? shape.hidden : shape.query_width();
  gathered.output.assign(static_cast<size_t>(rows * width), std::nanf(""));
  gathered.log_sum_exp.assign(static_cast<size_t>(rows * shape.query_heads), std::nanf(""));
  if (rules.hidden_input) {
    gathered.views.hidden = matrix(gathered.hidden, rows, shape.hidden);
  } else {
    gathered.views.query = matrix(gathered.query, rows, shape.query_width());
    gathered.views.key = matrix(gathered.key, rows, shape.key_width());
    gathered.views.value = matrix(gathered.value, rows, shape.key_width());
  }
  gathered.views.output = writable(gathered.output, rows, width);
  gathered.views.log_sum_exp = writable(gathered.log_sum_exp, rows, shape.query_heads);
}

StatusOr<LayerOutputs> try_step(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                const std::vector<ToyFeed>& feeds, const StepRules& rules) {
  std::vector<Feed> list;
  for (const ToyFeed& feed : feeds) list.push_back({feed.sequence, feed.count, feed.positions, feed.continues});
  FOLDKV_ASSIGN_OR_RETURN(const auto step, Step::begin(runtime, std::move(list), rules));
  LayerOutputs outputs;
  for (int64_t layer = 0; layer < host.shape().layers; ++layer) {
    GatheredInput input;
    gather_input(host, feeds, layer, rules, input);
    FOLDKV_RETURN_IF_ERROR(step->attend(layer, input.views));
    outputs.push_back(std::move(input.output));
  }
  FOLDKV_RETURN_IF_ERROR(step->commit());
  return outputs;
}

LayerOutputs run_step(const std::shared_ptr<Runtime>& runtime, const ToyHost& host, const std::vector<ToyFeed>& feeds,
                      const StepRules& rules) {
  auto outputs = try_step(runtime, host, feeds, rules);
  REQUIRE_MESSAGE(outputs.ok(), std::string(outputs.status().message()));
  return *std::move(outputs);
}

LayerOutputs feed_in_chunks(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                            const std::shared_ptr<Sequence>& sequence, const ToyTokens& tokens, int64_t first,
                            int64_t count, int64_t chunk, const StepRules& rules) {
  LayerOutputs all(static_cast<size_t>(host.shape().layers));
  for (int64_t done = 0; done < count; done += chunk) {
    const int64_t size = std::min(chunk, count - done);
    const LayerOutputs outputs =
        run_step(runtime, host, {{sequence, &tokens, first + done, size, done + size < count, {}}}, rules);
    for (size_t layer = 0; layer < all.size(); ++layer) {
      all[layer].insert(all[layer].end(), outputs[layer].begin(), outputs[layer].end());
    }
  }
  return all;
}

double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - b[i]);
    // NaN compares false with everything: count it as infinitely far.
    largest = difference <= largest ? largest : std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double error = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(error / size);
}

}  // namespace foldkv::test
