#include "samples/lab/decoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/full_attention.h"
#include "tests/samples/lab/reference_decoder.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv_lab::test {
namespace {

double largest_difference(const std::vector<float>& got, const std::vector<std::vector<double>>& expected) {
  double largest = 0;
  size_t i = 0;
  for (const std::vector<double>& row : expected) {
    for (const double number : row) largest = std::max(largest, std::abs(static_cast<double>(got[i++]) - number));
  }
  return largest;
}

TEST_CASE("the full cache computes what a decoder without cache does, however the text is cut") {
  const std::vector<Token> tokens = random_tokens(150, 1);
  for (const Model& model : varied_models()) {
    CAPTURE(model.shape.architecture);
    const std::vector<std::vector<double>> expected = ReferenceDecoder(model).logits(tokens);
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      for (const int64_t chunk : {1, 7, 64, 150}) {
        CAPTURE(chunk);
        FullAttention attention(model, CacheFormat::kF32, 150, pool);
        Decoder decoder(model, attention, pool);
        std::vector<float> logits;
        const absl::Status status = decoder.feed(tokens, 150, &logits, chunk);
        REQUIRE_MESSAGE(status.ok(), status.message());
        CHECK(largest_difference(logits, expected) < 1e-4);
        CHECK(attention.token_count() == 150);
      }
    }
  }
}

TEST_CASE("keys and values in 16 bit change little") {
  const Model model = random_model(small_shape("llama"), 1, 0);
  const std::vector<Token> tokens = random_tokens(100, 2);
  const std::vector<std::vector<double>> expected = ReferenceDecoder(model).logits(tokens);
  ThreadPool pool(2);
  FullAttention attention(model, CacheFormat::kF16, 100, pool);
  Decoder decoder(model, attention, pool);
  std::vector<float> logits;
  REQUIRE(decoder.feed(tokens, 100, &logits).ok());
  const double difference = largest_difference(logits, expected);
  CHECK(difference < 2e-2);
  CHECK(difference > 1e-5);
  CHECK(attention.cache().bytes(100) == 3 * 2 * 100 * (8 + 16) * 2);
}

TEST_CASE("results do not depend on the number of threads") {
  const Model model = random_model(small_shape("llama"), 5, 0);
  const std::vector<Token> tokens = random_tokens(200, 3);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    FullAttention attention(model, CacheFormat::kF32, 200, pool);
    // Attention alone: the products of the library may be cut differently for other threads.
    std::vector<float> output(static_cast<size_t>(200 * model.shape.hidden_size));
    REQUIRE(attention.begin_step(200, false).ok());
    REQUIRE(attention.attend(0, model.embedding.numbers.data(), output.data()).ok());
    REQUIRE(attention.commit_step().ok());
    results.push_back(output);
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    CHECK(std::abs(results[1][i] - results[0][i]) < 1e-5f);
    CHECK(std::abs(results[2][i] - results[0][i]) < 1e-5f);
  }
}

TEST_CASE("steps that cannot be leave the cache as it was") {
  const Model model = random_model(small_shape("llama"), 6, 0);
  ThreadPool pool(1);
  FullAttention attention(model, CacheFormat::kF32, 64, pool);
  Decoder decoder(model, attention, pool);
  std::vector<float> logits;
  const std::vector<Token> tokens = random_tokens(40, 4);
  REQUIRE(decoder.feed(tokens, 1, &logits).ok());
  CHECK(decoder.feed(tokens, 1, &logits).code() == absl::StatusCode::kResourceExhausted);
  CHECK(attention.token_count() == 40);
  CHECK_FALSE(decoder.feed(std::vector<Token>{262}, 1, &logits).ok());
  CHECK_FALSE(decoder.feed(std::vector<Token>{-1}, 1, &logits).ok());
  CHECK_FALSE(decoder.feed(std::vector<Token>{1}, 2, &logits).ok());
  CHECK(attention.token_count() == 40);
  REQUIRE(attention.clear().ok());
  CHECK(attention.token_count() == 0);
  CHECK(decoder.feed(tokens, 1, &logits).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
