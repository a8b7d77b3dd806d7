#include "samples/lab/key_similarities.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/decoder.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv_lab::test {
namespace {

using Floats = std::vector<float>;

TEST_CASE("the cosine of rows") {
  CHECK(mean_cosine(Floats{3, 4, 1, 0}, Floats{6, 8, 0, 2}, 2) == doctest::Approx(0.5));
  CHECK(mean_cosine(Floats{1, 1}, Floats{-2, -2}, 2) == doctest::Approx(-1.0));
  CHECK(mean_cosine(Floats{1, 0, 0, 0}, Floats{1, 1, 1, 1}, 2) == doctest::Approx(std::sqrt(0.5) / 2));
}

struct Scene {
  Model model = random_model(small_shape("llama"), 5, 0);
  ThreadPool threads{1};
  std::unique_ptr<FoldkvHost> host = FoldkvHost::create(model, "test", {}, threads).value();
};

TEST_CASE("a first layer's keys depend on their own token alone, later ones on those before") {
  Scene scene;
  SimilarityOptions options;
  options.prefix = 64;
  const std::vector<TextSample> texts = {{"one", random_tokens(80, 1)}, {"two", random_tokens(64, 2)}};
  const auto similarities = key_similarities(*scene.host, texts, options, [](int64_t) {});
  REQUIRE_MESSAGE(similarities.ok(), similarities.status().message());
  REQUIRE(similarities->size() == 3);
  CHECK((*similarities)[0] == doctest::Approx(1.0));
  for (size_t layer = 1; layer < 3; ++layer) {
    CHECK((*similarities)[layer] < 0.9999);
    CHECK((*similarities)[layer] > 0.0);
  }
  CHECK_FALSE(key_similarities(*scene.host, {{"short", random_tokens(63, 1)}}, options, [](int64_t) {}).ok());
}

TEST_CASE("tokens may jump ahead, once") {
  Scene scene;
  const auto attention = FoldkvAttention::create(*scene.host, nullptr, {}).value();
  Decoder decoder(scene.model, *attention, scene.threads);
  std::vector<float> no_logits;
  REQUIRE(decoder.feed(random_tokens(2, 1), 0, &no_logits).ok());
  attention->jump_to(10);
  REQUIRE(decoder.feed(random_tokens(3, 2), 0, &no_logits, 2).ok());
  CHECK(*attention->sequence().positions() == std::vector<int64_t>{0, 1, 10, 11, 12});
  attention->jump_to(5);
  CHECK_FALSE(decoder.feed(random_tokens(1, 3), 0, &no_logits).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
