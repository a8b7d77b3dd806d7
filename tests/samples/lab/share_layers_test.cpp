#include "samples/lab/share_layers.h"

#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/decoder.h"
#include "samples/lab/foldkv_attention.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("pairs are ranked by the mean of their keys' and their values' distances, farthest first") {
  // Distances: 0-1 (3 + 5) / 2, 0-2 (4 + 4) / 2, 1-2 (5 + 3) / 2: all 4; 0-3 and the others 0 to 10.
  const std::vector<MeanCache> caches = {{{0, 0}, {0, 0}}, {{3, 0}, {0, 5}}, {{0, 4}, {0, 4}}, {{6, 8}, {0, 0}}};
  const std::vector<LayerPair> pairs = rank_layer_pairs(caches);
  REQUIRE(pairs.size() == 6);
  CHECK(pairs[0].source == 1);  // (sqrt(9 + 64) + 5) / 2
  CHECK(pairs[0].layer == 3);
  CHECK(pairs[0].distance == doctest::Approx((8.5440037 + 5) / 2));
  CHECK(pairs[1].layer == 3);  // from 2: (sqrt(36 + 16) + 4) / 2
  CHECK(pairs[1].source == 2);
  CHECK(pairs[2].source == 0);
  CHECK(pairs[2].layer == 3);
  CHECK(pairs[2].distance == doctest::Approx(5.0));
  CHECK(pairs[3].layer == 1);  // equal ones: lower layers first
  CHECK(pairs[4].layer == 2);
  CHECK(pairs[4].source == 0);
  CHECK(pairs[5].layer == 2);
  CHECK(pairs[5].distance == doctest::Approx((5.0 + 1.0) / 2));
}

TEST_CASE("sharing takes pairs in order, refuses what changes too much, and follows chains") {
  const std::vector<LayerPair> pairs = {{1, 3, 9}, {2, 3, 8}, {0, 4, 7}, {0, 1, 6}, {3, 2, 5}};
  std::vector<std::vector<int32_t>> asked;
  const auto similarity = [&](const std::vector<int32_t>& sources) -> absl::StatusOr<double> {
    asked.push_back(sources);
    return sources[4] == 0 ? 0.2 : 0.9;
  };
  const auto two = choose_sharing(5, pairs, {.layers = 2, .threshold = 0.5}, similarity);
  REQUIRE(two.ok());
  // 3 reads 1; 2-3 is passed over since 3 shares; 0-4 is refused; 1 reads 0, and 3 with it.
  CHECK(*two == std::vector<int32_t>{0, 0, 2, 0, 4});
  CHECK(asked == std::vector<std::vector<int32_t>>{{0, 1, 2, 1, 4}, {0, 1, 2, 1, 0}, {0, 0, 2, 0, 4}});
  const auto five = choose_sharing(5, pairs, {.layers = 5, .threshold = 0.5}, similarity);
  CHECK(five.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(five.status().message()).find("only 3 of 5") != std::string::npos);
}

TEST_CASE("the search on a model gives a profile that stores fewer layers") {
  const Model model = random_model(small_shape("llama"), 3, 0.0);
  ThreadPool threads(2);
  const auto host = FoldkvHost::create(model, "small", {}, threads);
  REQUIRE(host.ok());
  foldkv::test::Random random(4);
  std::vector<TextSample> samples(2);
  for (TextSample& sample : samples) {
    for (int i = 0; i < 20; ++i) sample.tokens.push_back(static_cast<Token>(random.between(3, 250)));
  }
  int64_t tried = 0;
  const auto sources =
      share_layers(**host, samples, {.layers = 1, .threshold = -2.0}, [&](int64_t done) { tried = done; });
  REQUIRE(sources.ok());
  CHECK(tried == 1);
  const auto profile = sharing_profile(**host, *sources);
  REQUIRE(profile.ok());
  FoldkvAttention::Options options;
  const auto attention = FoldkvAttention::create(**host, &*profile, options);
  REQUIRE(attention.ok());
  Decoder decoder(model, **attention, threads);
  std::vector<float> logits;
  REQUIRE(decoder.feed(samples[0].tokens, 1, &logits).ok());
  const auto stats = (*attention)->stats();
  REQUIRE(stats.ok());
  CHECK(stats->token_bytes * 3 == stats->full_token_bytes * 2);
  // With sharing nothing the final states are those without a profile: the similarity is 1.
  CHECK(share_layers(**host, samples, {.layers = 1, .threshold = 1.0}, [](int64_t) {}).status().code() ==
        absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace foldkv_lab::test
