#include "samples/lab/cache_gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/decoder.h"
#include "samples/lab/divergence.h"
#include "samples/lab/full_attention.h"
#include "tests/samples/lab/reference_decoder.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv_lab::test {
namespace {

FloatBuffer buffer_of(const std::vector<std::vector<double>>& rows) {
  FloatBuffer buffer(static_cast<int64_t>(rows.size() * rows[0].size()));
  float* next = buffer.data();
  for (const std::vector<double>& row : rows) {
    for (const double number : row) *next++ = static_cast<float>(number);
  }
  return buffer;
}

// Keys and values of real tokens, from the reference decoder.
CachedContext context_of(const Model& model, const std::vector<Token>& tokens) {
  std::vector<ReferenceCache> cache(model.layers.size());
  (void)ReferenceDecoder(model).logits(tokens, &cache);
  CachedContext context;
  context.tokens = static_cast<int64_t>(tokens.size());
  for (const ReferenceCache& layer : cache) {
    context.keys.push_back(buffer_of(layer.keys));
    context.values.push_back(buffer_of(layer.values));
  }
  return context;
}

std::vector<std::vector<double>> rows_of(const FloatBuffer& buffer, int64_t width) {
  std::vector<std::vector<double>> rows;
  for (int64_t start = 0; start < buffer.size(); start += width) {
    rows.emplace_back(buffer.data() + start, buffer.data() + start + width);
  }
  return rows;
}

std::vector<ReferenceCache> reference_cache(const Model& model, const CachedContext& context) {
  std::vector<ReferenceCache> cache;
  for (size_t layer = 0; layer < context.keys.size(); ++layer) {
    cache.push_back(
        {rows_of(context.keys[layer], model.shape.kv_width()), rows_of(context.values[layer], model.shape.kv_width())});
  }
  return cache;
}

double log_total(const std::vector<double>& logits) {
  double total = 0;
  for (const double logit : logits) total += std::exp(logit);
  return std::log(total);
}

// In double precision. The cache is a copy: the decoder appends to it.
double reference_loss(const Model& model, std::vector<ReferenceCache> cache, const std::vector<Token>& fed,
                      const std::vector<Token>& labels) {
  const std::vector<std::vector<double>> logits = ReferenceDecoder(model).logits(fed, &cache);
  double loss = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    loss += log_total(logits[row]) - logits[row][static_cast<size_t>(labels[row])];
  }
  return loss;
}

struct Sample {
  Sample(const Model& model, int64_t context_tokens, int64_t fed_tokens)
      : context(context_of(model, random_tokens(context_tokens, 11))),
        fed(random_tokens(fed_tokens, 12)),
        labels(random_tokens(fed_tokens, 13)) {}

  CachedContext context;
  std::vector<Token> fed;
  std::vector<Token> labels;
};

CacheGradients gradients_of(const Model& model, const Sample& sample, int threads) {
  ThreadPool pool(threads);
  absl::StatusOr<CacheGradients> result = labels_gradients(model, sample.context, sample.fed, sample.labels, pool);
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  return *std::move(result);
}

void check_close(double got, double expected) {
  CAPTURE(got);
  CAPTURE(expected);
  CHECK(std::abs(got - expected) < 1e-3 * std::abs(expected) + 1e-5);
}

// Some coordinates of every layer, each by the difference quotient of the double-precision loss.
void check_coordinates(const Model& model, const Sample& sample, int64_t count) {
  const CacheGradients gradients = gradients_of(model, sample, 2);
  std::vector<ReferenceCache> cache = reference_cache(model, sample.context);
  foldkv::test::Random random(7);
  for (size_t layer = 0; layer < cache.size(); ++layer) {
    for (int64_t i = 0; i < 2 * count; ++i) {
      const bool of_key = i % 2 == 0;
      const int64_t token = random.between(0, sample.context.tokens - 1);
      const int64_t index = random.between(0, model.shape.kv_width() - 1);
      CAPTURE(layer);
      CAPTURE(of_key);
      CAPTURE(token);
      CAPTURE(index);
      double& number =
          (of_key ? cache[layer].keys : cache[layer].values)[static_cast<size_t>(token)][static_cast<size_t>(index)];
      constexpr double kStep = 1e-4;
      const double before = number;
      number = before + kStep;
      const double above = reference_loss(model, cache, sample.fed, sample.labels);
      number = before - kStep;
      const double below = reference_loss(model, cache, sample.fed, sample.labels);
      number = before;
      const FloatBuffer& side = of_key ? gradients.keys[layer] : gradients.values[layer];
      check_close(static_cast<double>(side.data()[token * model.shape.kv_width() + index]),
                  (above - below) / (2 * kStep));
    }
  }
}

// Moves a side of the cache along a direction from `random`; returns the gradient's product with the direction.
double move(std::vector<std::vector<double>>* rows, const FloatBuffer& gradient, double step,
            foldkv::test::Random* random) {
  double along = 0;
  const float* next = gradient.data();
  for (std::vector<double>& row : *rows) {
    for (double& number : row) {
      const double direction = random->normal();
      number += step * direction;
      along += direction * static_cast<double>(*next++);
    }
  }
  return along;
}

// The whole context at once along random directions: no coordinate is left out.
void check_directions(const Model& model, const Sample& sample) {
  const CacheGradients gradients = gradients_of(model, sample, 2);
  for (const uint64_t seed : {1, 2}) {
    constexpr double kStep = 1e-5;
    double losses[2];
    double along = 0;
    for (const int side : {0, 1}) {
      foldkv::test::Random random(seed);
      std::vector<ReferenceCache> cache = reference_cache(model, sample.context);
      along = 0;
      for (size_t layer = 0; layer < cache.size(); ++layer) {
        along += move(&cache[layer].keys, gradients.keys[layer], side == 0 ? -kStep : kStep, &random);
        along += move(&cache[layer].values, gradients.values[layer], side == 0 ? -kStep : kStep, &random);
      }
      losses[side] = reference_loss(model, cache, sample.fed, sample.labels);
    }
    check_close(along, (losses[1] - losses[0]) / (2 * kStep));
  }
}

TEST_CASE("gradients of keys and values are what the loss of a double-precision decoder changes by") {
  for (const Model& model : varied_models()) {
    CAPTURE(model.shape.architecture);
    CAPTURE(model.shape.kv_heads);
    const Sample sample(model, 21, 10);
    check_coordinates(model, sample, 6);
    check_directions(model, sample);
  }
}

TEST_CASE("gradients are right when rows are computed in several blocks") {
  const Model model = random_model(small_shape("qwen2"), 5, 3);
  const Sample sample(model, 70, 150);
  check_coordinates(model, sample, 1);
  check_directions(model, sample);
}

TEST_CASE("a context of one token and a single fed token have gradients") {
  const Model model = random_model(small_shape("llama"), 6, 0);
  check_directions(model, Sample(model, 1, 1));
  check_directions(model, Sample(model, 1, 5));
}

TEST_CASE("gradients do not depend on the number of threads") {
  const Model model = random_model(small_shape("qwen2"), 2, 3);
  const Sample sample(model, 150, 200);
  const CacheGradients one = gradients_of(model, sample, 1);
  const CacheGradients three = gradients_of(model, sample, 3);
  CHECK(one.loss == three.loss);
  for (size_t layer = 0; layer < one.keys.size(); ++layer) {
    const size_t bytes = static_cast<size_t>(one.keys[layer].size()) * sizeof(float);
    CHECK(std::memcmp(one.keys[layer].data(), three.keys[layer].data(), bytes) == 0);
    CHECK(std::memcmp(one.values[layer].data(), three.values[layer].data(), bytes) == 0);
  }
}

TEST_CASE("the loss is that of the decoder with a full cache") {
  for (const Model& model : varied_models()) {
    ThreadPool pool(2);
    const Sample sample(model, 40, 30);
    std::vector<Token> tokens = random_tokens(40, 11);
    tokens.insert(tokens.end(), sample.fed.begin(), sample.fed.end());
    FullAttention attention(model, CacheFormat::kF32, 70, pool);
    std::vector<float> logits;
    REQUIRE(Decoder(model, attention, pool).feed(tokens, 30, &logits).ok());
    double expected = 0;
    const size_t vocabulary = static_cast<size_t>(model.shape.vocabulary_size);
    for (size_t row = 0; row < 30; ++row) {
      const std::span<const float> row_logits(logits.data() + row * vocabulary, vocabulary);
      expected += compare_logits(row_logits, row_logits, sample.labels[row])->reference_loss;
    }
    const absl::StatusOr<double> loss = labels_loss(model, sample.context, sample.fed, sample.labels, pool);
    REQUIRE(loss.ok());
    CHECK(std::abs(*loss - expected) < 1e-4);
    CHECK(std::abs(*loss - reference_loss(model, reference_cache(model, sample.context), sample.fed, sample.labels)) <
          1e-4);
    CHECK(gradients_of(model, sample, 2).loss == *loss);
  }
}

TEST_CASE("labels are drawn from what the model predicts, one number of the generator each") {
  const Model model = random_model(small_shape("llama"), 1, 0);
  Sample sample(model, 20, 60);
  ThreadPool pool(2);
  const absl::StatusOr<CacheGradients> drawn = cache_gradients(model, sample.context, sample.fed, 42, pool);
  REQUIRE(drawn.ok());
  std::vector<ReferenceCache> cache = reference_cache(model, sample.context);
  const std::vector<std::vector<double>> logits = ReferenceDecoder(model).logits(sample.fed, &cache);
  foldkv::test::Random random(42);
  for (size_t row = 0; row < logits.size(); ++row) {
    const double uniform = random.uniform();
    const double total = log_total(logits[row]);
    Token label = -1;
    for (double sum = 0; sum <= uniform;) sum += std::exp(logits[row][static_cast<size_t>(++label)] - total);
    CHECK(drawn->labels[row] == label);
  }
  sample.labels = drawn->labels;
  const CacheGradients given = gradients_of(model, sample, 2);
  CHECK(given.loss == drawn->loss);
  CHECK(std::equal(given.keys[0].data(), given.keys[0].data() + given.keys[0].size(), drawn->keys[0].data()));
  CHECK(cache_gradients(model, sample.context, sample.fed, 43, pool)->labels != drawn->labels);
}

// Status of both entries; they must agree.
std::string refusal(const Model& model, const Sample& sample) {
  ThreadPool pool(1);
  const absl::Status status = labels_gradients(model, sample.context, sample.fed, sample.labels, pool).status();
  CHECK(labels_loss(model, sample.context, sample.fed, sample.labels, pool).status() == status);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a context that is not of the model is refused by name") {
  const Model model = random_model(small_shape("llama"), 1, 0);
  const auto refusal_of = [&](auto change) {
    Sample sample(model, 5, 4);
    change(&sample.context);
    return refusal(model, sample);
  };
  CHECK(contains(refusal_of([](CachedContext* context) { context->tokens = 0; }), "context.tokens"));
  CHECK(contains(refusal_of([](CachedContext* context) { *context = {}; }), "context.tokens"));
  CHECK(contains(refusal_of([](CachedContext* context) { context->tokens = int64_t{1} << 60; }), "context.tokens"));
  CHECK(contains(refusal_of([](CachedContext* context) { context->tokens = 6; }), "context.keys[0]"));
  CHECK(contains(refusal_of([](CachedContext* context) { context->keys.pop_back(); }), "context.keys has 2 layers"));
  CHECK(contains(refusal_of([](CachedContext* context) { context->values.clear(); }), "context.values"));
  CHECK(contains(refusal_of([](CachedContext* context) { context->values[1] = FloatBuffer(3); }), "context.values[1]"));
  CHECK(contains(
      refusal_of([](CachedContext* context) { context->keys[2].data()[4] = std::numeric_limits<float>::quiet_NaN(); }),
      "context.keys[2]"));
}

TEST_CASE("tokens and labels that cannot be are refused by name") {
  const Model model = random_model(small_shape("llama"), 1, 0);
  const auto refusal_of = [&](const std::vector<Token>& fed, const std::vector<Token>& labels) {
    Sample sample(model, 5, 1);
    sample.fed = fed;
    sample.labels = labels;
    return refusal(model, sample);
  };
  CHECK(contains(refusal_of({}, {}), "fed holds no tokens"));
  CHECK(contains(refusal_of({1, 262}, {1, 2}), "fed[1] is 262"));
  CHECK(contains(refusal_of({-1, 0}, {1, 2}), "fed[0] is -1"));
  CHECK(contains(refusal_of({1, 2}, {1}), "labels holds 1 tokens"));
  CHECK(contains(refusal_of({1, 2}, {1, 262}), "labels[1] is 262"));
  ThreadPool pool(1);
  const Sample sample(model, 5, 1);
  CHECK_FALSE(cache_gradients(model, sample.context, {}, 1, pool).ok());
  CHECK_FALSE(cache_gradients(model, sample.context, std::vector<Token>{262}, 1, pool).ok());
}

TEST_CASE("logits that are not finite are an error") {
  Model model = random_model(small_shape("llama"), 1, 0);
  model.final_norm[3] = std::numeric_limits<float>::infinity();
  const Sample sample(model, 5, 3);
  ThreadPool pool(1);
  CHECK(cache_gradients(model, sample.context, sample.fed, 1, pool).status().code() == absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace foldkv_lab::test
