#include "samples/lab/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/golden.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("golden values") {
  const nlohmann::json golden = foldkv::test::read_golden("divergence");
  for (const nlohmann::json& expected : golden["cases"]) {
    for (size_t row = 0; row < expected["reference"].size(); ++row) {
      const std::vector<float> reference = foldkv::test::numbers_f32(expected["reference"][row]);
      const std::vector<float> perturbed = foldkv::test::numbers_f32(expected["perturbed"][row]);
      const auto divergence = compare_logits(reference, perturbed, -1);
      REQUIRE(divergence.ok());
      // The golden logits are double; as floats they differ by up to 2^-24 of their size, and KL by as much.
      double size = 0;
      for (const float logit : reference) size = std::max(size, std::abs(static_cast<double>(logit)));
      for (const float logit : perturbed) size = std::max(size, std::abs(static_cast<double>(logit)));
      const double rounding = 4 * size * 0x1p-24;
      CHECK(std::abs(divergence->kl - expected["kl"][row].get<double>()) <=
            golden["tolerance"].get<double>() + rounding);
      CHECK(divergence->same_top == (expected["top1"][row].get<double>() != 0));
    }
  }
}

TEST_CASE("losses of a target") {
  const std::vector<float> even = {1.0f, 1.0f, 1.0f, 1.0f};
  const std::vector<float> sure = {100.0f, 0.0f, 0.0f, 0.0f};
  const auto divergence = compare_logits(even, sure, 0);
  REQUIRE(divergence.ok());
  CHECK(divergence->reference_loss == doctest::Approx(std::log(4.0)));
  CHECK(divergence->perturbed_loss == doctest::Approx(0.0));
  CHECK(divergence->kl == doctest::Approx(75.0 - std::log(4.0)));
  CHECK(divergence->same_top);
}

TEST_CASE("of equal logits the first counts") {
  CHECK(top_token(std::vector<float>{1, 3, 3}) == 1);
  CHECK_FALSE(compare_logits(std::vector<float>{3, 3}, std::vector<float>{1, 3}, -1)->same_top);
}

TEST_CASE("what cannot be compared") {
  const std::vector<float> good = {1, 2};
  CHECK_FALSE(compare_logits(good, std::vector<float>{1}, -1).ok());
  CHECK_FALSE(compare_logits({}, {}, -1).ok());
  CHECK_FALSE(compare_logits(good, good, 2).ok());
  CHECK_FALSE(compare_logits(good, std::vector<float>{1, std::nanf("")}, -1).ok());
  CHECK_FALSE(compare_logits(std::vector<float>{std::nanf(""), 1}, good, -1).ok());
  CHECK_FALSE(compare_logits(good, std::vector<float>{1, std::numeric_limits<float>::infinity()}, -1).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
