#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/cache/estimate.h"
#include "runtime/policy/codec_profile.h"
#include "tests/runtime/cache/toy_host.h"

// Sequences under the codecs that need no calibration, each against its formula computed here.
namespace foldkv::test {
namespace {

using backend::Side;

constexpr int64_t kSinks = 4;
constexpr int64_t kPrompt = 4 + 192 + 20;  // what is encoded is a multiple of a page
constexpr int64_t kEncoded = 192;

ToyShape codec_shape() {
  ToyShape shape;
  shape.layers = 5;
  shape.query_heads = 6;
  shape.kv_heads = 3;
  shape.head_size = 20;  // no multiple of a register, of 32 or of a Hadamard block
  return shape;
}

SequencePolicy codec_policy() {
  SequencePolicy policy;
  policy.format = NumberFormat::kF32;
  policy.sink_tokens = kSinks;
  policy.recent_tokens = 20;
  return policy;
}

std::shared_ptr<const Profile> codec_profile(const ToyHost& host, const CodecWish& wish) {
  auto profile = make_codec_profile(*host.model(), wish);
  REQUIRE_MESSAGE(profile.ok(), std::string(profile.status().message()));
  return std::make_shared<const Profile>(std::move(*profile));
}

struct NamedWish {
  std::string name;
  CodecWish wish;
};

std::vector<NamedWish> all_wishes() {
  CodecWish low_rank{CodecName::kXkv};
  low_rank.layers_per_group = 3;
  low_rank.key_rank = 30;
  low_rank.value_rank = 40;
  CodecWish coarse = low_rank;
  coarse.bits = 4;
  CodecWish shared{CodecName::kKvSharer};
  shared.sources = {0, 0, 2, 1, 2};
  return {{"int8", {CodecName::kInteger}}, {"int3", {CodecName::kInteger, 3}}, {"kivi2", {CodecName::kKivi, 2}},
          {"kivi4", {CodecName::kKivi}},   {"xkv", low_rank},                  {"xkv4", coarse},
          {"minicache", {CodecName::kMiniCache}}, {"kvsharer", shared}};
}

// Rows [count][key width] of one layer and side as the sequence gives them back.
std::vector<float> rebuilt(const Sequence& sequence, int64_t layer, Side side, int64_t first, int64_t count) {
  const int64_t width = sequence.model().layer(layer).key_width();
  std::vector<float> rows(static_cast<size_t>(count * width));
  const MutableTensorView view{reinterpret_cast<std::byte*>(rows.data()), NumberFormat::kF32, count, width, width};
  const Status status = sequence.rebuild({layer, side, false, first, count}, view);
  REQUIRE_MESSAGE(status.ok(), std::string(status.message()));
  return rows;
}

// One prompt in a sequence of its own.
struct Scene {
  ToyHost host{codec_shape()};
  ToyTokens tokens = host.tokens(kPrompt + 1, 5);
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<Sequence> sequence;

  Scene(const std::string& backend, const CodecWish& wish) : runtime(open_runtime({backend, 2})) {
    sequence = make_sequence(runtime, host, codec_profile(host, wish), codec_policy());
    (void)feed_in_chunks(runtime, host, sequence, tokens, 0, kPrompt, kPrompt);
  }
  [[nodiscard]] const std::vector<float>& given(int64_t layer, Side side) const {
    return (side == Side::kKeys ? tokens.key : tokens.value)[static_cast<size_t>(layer)];
  }
  // Of the encoded token, counted from the first one.
  [[nodiscard]] const float* row(int64_t layer, Side side, int64_t token) const {
    return given(layer, side).data() + (kSinks + token) * host.shape().key_width();
  }
  [[nodiscard]] std::vector<float> encoded(int64_t layer, Side side) const {
    return rebuilt(*sequence, layer, side, kSinks, kEncoded);
  }
};

double half(double number) { return static_cast<double>(f32_from_f16(f16_from_f32(static_cast<float>(number)))); }

template <typename Check>
void for_each_backend_and_side(const CodecWish& wish, const Check& check) {
  for (const std::string& backend : backend_names()) {
    CAPTURE(backend);
    const Scene scene(backend, wish);
    REQUIRE(scene.sequence->storage().latent_tokens() == (wish.codec == CodecName::kKvSharer ? 0 : kEncoded));
    for (const Side side : {Side::kKeys, Side::kValues}) check(scene, side);
  }
}

TEST_CASE("integers: a symmetric scale for each token and head") {
  for (const int32_t bits : {8, 4, 3}) {
    CAPTURE(bits);
    for_each_backend_and_side({CodecName::kInteger, bits}, [&](const Scene& scene, Side side) {
      const int64_t size = scene.host.shape().head_size;
      const std::vector<float> rows = scene.encoded(1, side);
      double worst = 0.0;
      for (int64_t head = 0; head < kEncoded * scene.host.shape().kv_heads; ++head) {
        const float* const given = scene.row(1, side, 0) + head * size;
        double largest = 0.0;
        for (int64_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(double{given[i]}));
        const double limit = std::pow(2.0, bits - 1) - 1.0;
        const double scale = half(largest / limit);
        for (int64_t i = 0; i < size; ++i) {
          const double code = std::clamp(std::nearbyint(double{given[i]} / scale), -limit, limit);
          worst = std::max(worst, std::abs(code * scale - double{rows[static_cast<size_t>(head * size + i)]}));
        }
      }
      CHECK(worst == 0.0);
    });
  }
}

// The distance of a number from what KIVI's quantizer makes of it.
double kivi_number(double number, double smallest, double largest, int32_t bits) {
  const double scale = half((largest - smallest) / (std::pow(2.0, bits) - 1.0));
  const double zero = half(smallest);
  const double code = std::clamp(std::nearbyint((number - zero) / scale), 0.0, std::pow(2.0, bits) - 1.0);
  return zero + code * scale;
}

TEST_CASE("KIVI: keys per channel over 32 tokens, values per token over 32 channels") {
  for (const int32_t bits : {2, 4, 7}) {
    CAPTURE(bits);
    for_each_backend_and_side({CodecName::kKivi, bits}, [&](const Scene& scene, Side side) {
      const int64_t width = scene.host.shape().key_width();
      const std::vector<float> rows = scene.encoded(2, side);
      double worst = 0.0;
      for (int64_t token = 0; token < kEncoded; ++token) {
        for (int64_t i = 0; i < width; ++i) {
          // The numbers that share a scale with this one.
          std::vector<double> group;
          if (side == Side::kKeys) {
            for (int64_t t = token / 32 * 32; t < token / 32 * 32 + 32; ++t) group.push_back(scene.row(2, side, t)[i]);
          } else {
            for (int64_t j = i / 32 * 32; j < std::min(width, i / 32 * 32 + 32); ++j) {
              group.push_back(scene.row(2, side, token)[j]);
            }
          }
          const auto [smallest, largest] = std::minmax_element(group.begin(), group.end());
          const double expected = kivi_number(scene.row(2, side, token)[i], *smallest, *largest, bits);
          worst = std::max(worst, std::abs(expected - double{rows[static_cast<size_t>(token * width + i)]}));
        }
      }
      CHECK(worst < 1e-6);
    });
  }
}

// The encoded rows of the layers of a group, side by side, as given or as rebuilt.
Eigen::MatrixXd stacked(const Scene& scene, const std::vector<int64_t>& layers, Side side, bool as_given) {
  const int64_t width = scene.host.shape().key_width();
  Eigen::MatrixXd matrix(kEncoded, width * std::ssize(layers));
  for (int64_t place = 0; place < std::ssize(layers); ++place) {
    const std::vector<float> back = scene.encoded(layers[static_cast<size_t>(place)], side);
    const float* const numbers = as_given ? scene.row(layers[static_cast<size_t>(place)], side, 0) : back.data();
    for (int64_t i = 0; i < kEncoded * width; ++i) {
      matrix(i / width, place * width + i % width) = double{numbers[i]};
    }
  }
  return matrix;
}

TEST_CASE("xKV: what is lost is what the leading singular vectors leave, and nothing at full rank") {
  for (const auto& [first_rank, second_rank] : {std::pair(30, 40), std::pair(180, 180)}) {
    CodecWish wish{CodecName::kXkv};
    wish.layers_per_group = 3;
    wish.key_rank = first_rank;
    wish.value_rank = second_rank;
    for_each_backend_and_side(wish, [&, keys = first_rank, values = second_rank](const Scene& scene, Side side) {
      const Eigen::MatrixXd given = stacked(scene, {0, 1, 2}, side, true);
      const double lost = (given - stacked(scene, {0, 1, 2}, side, false)).squaredNorm();
      const Eigen::VectorXd singular = Eigen::JacobiSVD<Eigen::MatrixXd>(given).singularValues();
      const double tail = singular.tail(singular.size() - (side == Side::kKeys ? keys : values)).squaredNorm();
      CHECK(lost >= tail);
      // Coordinates in f16 add their rounding.
      CHECK(lost <= tail + 1e-6 * given.squaredNorm());
    });
  }
}

TEST_CASE("xKV with coarse codes: balanced coordinates lose little more than the rank does") {
  CodecWish wish{CodecName::kXkv, 8};
  wish.layers_per_group = 3;
  wish.key_rank = 30;
  wish.value_rank = 30;
  for_each_backend_and_side(wish, [&](const Scene& scene, Side side) {
    const Eigen::MatrixXd given = stacked(scene, {0, 1, 2}, side, true);
    const double lost = (given - stacked(scene, {0, 1, 2}, side, false)).squaredNorm();
    const Eigen::VectorXd singular = Eigen::JacobiSVD<Eigen::MatrixXd>(given).singularValues();
    const double tail = singular.tail(singular.size() - 30).squaredNorm();
    CHECK(lost >= tail);
    CHECK(lost <= tail + 1e-3 * given.squaredNorm());
  });
}

TEST_CASE("MiniCache: shared directions with their norms, and the farthest pairs as they were") {
  CodecWish wish{CodecName::kMiniCache};
  wish.first_layer = 1;  // pairs 1-2 and 3-4
  for_each_backend_and_side(wish, [&](const Scene& scene, Side side) {
    const int64_t size = scene.host.shape().head_size;
    const int64_t heads = scene.host.shape().kv_heads;
    const std::vector<float> back[2] = {scene.encoded(3, side), scene.encoded(4, side)};
    double worst = 0.0;
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t page = 0; page < kEncoded / 64; ++page) {
        std::vector<std::pair<double, int64_t>> cosines;
        for (int64_t token = page * 64; token < (page + 1) * 64; ++token) {
          const float* const a = scene.row(3, side, token) + head * size;
          const float* const b = scene.row(4, side, token) + head * size;
          const Eigen::Map<const Eigen::VectorXf> first(a, size), second(b, size);
          cosines.emplace_back(first.cast<double>().normalized().dot(second.cast<double>().normalized()), token);
        }
        std::vector<std::pair<double, int64_t>> sorted = cosines;
        std::sort(sorted.begin(), sorted.end());
        std::set<int64_t> retained;
        for (int64_t i = 0; i < 4; ++i) retained.insert(sorted[static_cast<size_t>(i)].second);  // 5% of 64, rounded up
        for (const auto& [cosine, token] : cosines) {
          const double angle = std::acos(cosine);
          for (int64_t i = 0; i < size; ++i) {
            const int64_t place = head * size + i;
            const double a = scene.row(3, side, token)[place];
            const double b = scene.row(4, side, token)[place];
            const Eigen::Map<const Eigen::VectorXf> first(scene.row(3, side, token) + head * size, size);
            const Eigen::Map<const Eigen::VectorXf> second(scene.row(4, side, token) + head * size, size);
            const double norms[2] = {first.cast<double>().norm(), second.cast<double>().norm()};
            const double direction =
                (std::sin(0.4 * angle) * a / norms[0] + std::sin(0.6 * angle) * b / norms[1]) / std::sin(angle);
            for (size_t layer = 0; layer < 2; ++layer) {
              const double expected = retained.contains(token) ? half(layer == 0 ? a : b)
                                                               : half(norms[layer]) * half(direction);
              const double got = back[layer][static_cast<size_t>(token * heads * size + place)];
              worst = std::max(worst, std::abs(expected - got) / (1.0 + norms[layer]));
            }
          }
        }
      }
    }
    CHECK(worst < 1e-3);  // interpolation is kept in f32: a direction may round to the other half
    CHECK(scene.encoded(0, side) == std::vector<float>(scene.row(0, side, 0), scene.row(0, side, kEncoded)));
  });
}

TEST_CASE("KVSharer: layers read the rows of their sources, and store none") {
  CodecWish wish{CodecName::kKvSharer};
  wish.sources = {0, 0, 2, 1, 2};  // 3 reads 1, which reads 0
  for_each_backend_and_side(wish, [&](const Scene& scene, Side side) {
    const std::vector<int64_t> roots = {0, 0, 2, 0, 2};
    for (int64_t layer = 0; layer < 5; ++layer) {
      CHECK(scene.encoded(layer, side) == scene.encoded(roots[static_cast<size_t>(layer)], side));
    }
    CHECK(scene.encoded(2, side) == std::vector<float>(scene.row(2, side, 0), scene.row(2, side, kEncoded)));
    const std::vector<float> row(static_cast<size_t>(scene.host.shape().key_width()), 1.0f);
    const TensorView view{reinterpret_cast<const std::byte*>(row.data()), NumberFormat::kF32, 1, std::ssize(row),
                          std::ssize(row)};
    CHECK(scene.sequence->replace({1, side, 0}, view).code() == absl::StatusCode::kFailedPrecondition);
    const int64_t row_bytes = scene.host.shape().key_width() * 4;
    CHECK(scene.sequence->storage().ledger().of(Role::kExact) == 2 * 2 * 224 * row_bytes);  // whole pages
  });
}

// What attention sees is what rebuild returns.
TEST_CASE("attention over every codec is attention over its rebuilt rows") {
  for (const NamedWish& named : all_wishes()) {
    CAPTURE(named.name);
    for (const std::string& backend : backend_names()) {
      CAPTURE(backend);
      const Scene scene(backend, named.wish);
      ToyTokens tokens = scene.tokens;
      for (int64_t layer = 0; layer < 5; ++layer) {
        for (const Side side : {Side::kKeys, Side::kValues}) {
          auto& rows = (side == Side::kKeys ? tokens.key : tokens.value)[static_cast<size_t>(layer)];
          const std::vector<float> back = rebuilt(*scene.sequence, layer, side, 0, kPrompt);
          std::copy(back.begin(), back.end(), rows.begin());
        }
      }
      const LayerOutputs outputs =
          run_step(scene.runtime, scene.host, {{scene.sequence, &scene.tokens, kPrompt, 1, false, {}}});
      for (int64_t layer = 0; layer < 5; ++layer) {
        // The new token's row of a layer that reads another one is the other one's too.
        const auto& sources = named.wish.sources;
        const int64_t source = sources.empty() ? layer : std::vector<int64_t>{0, 0, 2, 0, 2}[static_cast<size_t>(layer)];
        std::vector<float> key = tokens.key[static_cast<size_t>(layer)];
        std::vector<float> value = tokens.value[static_cast<size_t>(layer)];
        const int64_t last = kPrompt * scene.host.shape().key_width();
        std::copy(scene.given(source, Side::kKeys).begin() + last, scene.given(source, Side::kKeys).end(),
                  key.begin() + last);
        std::copy(scene.given(source, Side::kValues).begin() + last, scene.given(source, Side::kValues).end(),
                  value.begin() + last);
        const std::vector<double> expected = oracle_attention(
            scene.host, layer, scene.tokens.query[static_cast<size_t>(layer)], key, value, kPrompt, 1);
        CHECK(largest_difference(outputs[static_cast<size_t>(layer)], expected) < 2e-5);
      }
    }
  }
}

TEST_CASE("forks of every codec go on like the sequence itself") {
  for (const NamedWish& named : all_wishes()) {
    CAPTURE(named.name);
    const Scene scene("cpu", named.wish);
    const auto fork = scene.sequence->fork();
    REQUIRE(fork.ok());
    CHECK((*fork)->storage().ledger().total() == scene.sequence->storage().ledger().total());
    CHECK((*fork)->energies()[0].share_lost() == scene.sequence->energies()[0].share_lost());
    const auto next = [&](const std::shared_ptr<Sequence>& sequence) {
      return run_step(scene.runtime, scene.host, {{sequence, &scene.tokens, kPrompt, 1, false, {}}});
    };
    CHECK(next(*fork) == next(scene.sequence));
  }
}

LayerOutputs life_of(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                     const std::shared_ptr<const Profile>& profile, int64_t chunk, Ledger& ledger) {
  constexpr int64_t kGenerated = 70;  // more than a fold
  const ToyTokens tokens = host.tokens(kPrompt + 7 + kGenerated, 5);
  const auto sequence = make_sequence(runtime, host, profile, codec_policy());
  LayerOutputs all = feed_in_chunks(runtime, host, sequence, tokens, 0, kPrompt + 7, chunk);
  for (int64_t token = kPrompt + 7; token < tokens.count; ++token) {
    const LayerOutputs outputs = run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
    for (size_t layer = 0; layer < all.size(); ++layer) {
      all[layer].insert(all[layer].end(), outputs[layer].begin(), outputs[layer].end());
    }
  }
  ledger = sequence->storage().ledger();
  return all;
}

TEST_CASE("every codec: the same bits in chunks and on several threads, and the bytes that were estimated") {
  const ToyHost host(codec_shape());
  for (const NamedWish& named : all_wishes()) {
    CAPTURE(named.name);
    const auto profile = codec_profile(host, named.wish);
    for (const std::string& backend : backend_names()) {
      CAPTURE(backend);
      const auto runtime = open_runtime({backend, 1});
      Ledger ledger;
      const LayerOutputs whole = life_of(runtime, host, profile, 1000, ledger);
      for (const auto& [threads, chunk] : {std::pair{2, 33}, {3, 100}}) {
        if (backend == "reference" && threads == 3) continue;  // it has one thread, and is slow
        Ledger again;
        CHECK(life_of(open_runtime({backend, threads}), host, profile, chunk, again) == whole);
        CHECK(again.total() == ledger.total());
      }
      const auto estimate = estimate_sequence(*runtime, host.model(), profile, {codec_policy(), {}, kPrompt + 7, 70});
      REQUIRE(estimate.ok());
      CHECK(estimate->sequence_bytes == ledger.total());
      CHECK(runtime->arena().stats().ledger.of(Role::kScratch) == 0);
    }
  }
}

TEST_CASE("in one step with others every codec gives what it gives alone, whoever has found bases already") {
  const ToyHost host(codec_shape());
  for (const std::string& backend : backend_names()) {
    for (const NamedWish& named : all_wishes()) {
      CAPTURE(named.name);
      const auto runtime = open_runtime({backend, 1});
      const auto profile = codec_profile(host, named.wish);
      std::vector<ToyTokens> texts;
      std::vector<ToyFeed> together;
      std::vector<ToyFeed> alone;
      for (uint32_t text = 0; text < 3; ++text) texts.push_back(host.tokens(kPrompt + 2, 20 + text));
      for (size_t text = 0; text < texts.size(); ++text) {
        for (std::vector<ToyFeed>* feeds : {&together, &alone}) {
          const auto sequence = make_sequence(runtime, host, profile, codec_policy());
          // The first one has nothing compressed.
          (void)run_step(runtime, host, {{sequence, &texts[text], 0, kPrompt, text == 0, {}}});
          feeds->push_back({sequence, &texts[text], kPrompt, 2, text == 0, {}});
        }
      }
      const LayerOutputs batch = run_step(runtime, host, together);
      for (size_t text = 0; text < texts.size(); ++text) {
        const LayerOutputs single = run_step(runtime, host, {alone[text]});
        for (size_t layer = 0; layer < single.size(); ++layer) {
          const auto begin = batch[layer].begin() + std::ssize(single[layer]) * static_cast<std::ptrdiff_t>(text);
          CHECK(std::equal(single[layer].begin(), single[layer].end(), begin));
        }
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
