#include "samples/lab/sampler.h"

#include <vector>

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("temperature 0 takes the likeliest") {
  Sampler sampler(0, 1);
  CHECK(sampler.choose(std::vector<float>{0, 2, 1}) == 1);
}

TEST_CASE("a temperature draws by softmax, the same for the same seed") {
  const std::vector<float> logits = {0.0f, 1.0986123f, -50.0f};  // 1 : 3 : nothing
  Sampler sampler(1.0, 7);
  Sampler twin(1.0, 7);
  int counts[3] = {0, 0, 0};
  for (int i = 0; i < 4000; ++i) {
    const Token token = sampler.choose(logits);
    CHECK(token == twin.choose(logits));
    ++counts[token];
  }
  CHECK(counts[2] == 0);
  CHECK(counts[0] > 900);
  CHECK(counts[0] < 1100);
}

}  // namespace
}  // namespace foldkv_lab::test
