#include "samples/lab/divergence.h"

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
      const std::vector<double> reference = foldkv::test::numbers(expected["reference"][row]);
      const std::vector<double> perturbed = foldkv::test::numbers(expected["perturbed"][row]);
      const auto divergence = compare_logits<double>(reference, perturbed, -1);
      REQUIRE(divergence.ok());
      const double kl = expected["kl"][row];
      CHECK(std::abs(divergence->kl - kl) <= golden["tolerance"].get<double>());
      CHECK(divergence->same_top == (expected["top1"][row].get<double>() != 0));
      // As floats the logits are off by 2^-24 of their size, and the divergence by as much.
      const auto narrow = compare_logits<float>(foldkv::test::numbers_f32(expected["reference"][row]),
                                                foldkv::test::numbers_f32(expected["perturbed"][row]), -1);
      REQUIRE(narrow.ok());
      CHECK(std::abs(narrow->kl - kl) <= 1e-5);
    }
  }
}

TEST_CASE("losses of a target") {
  const std::vector<float> even = {1.0f, 1.0f, 1.0f, 1.0f};
  const std::vector<float> sure = {100.0f, 0.0f, 0.0f, 0.0f};
  const auto divergence = compare_logits<float>(even, sure, 0);
  REQUIRE(divergence.ok());
  CHECK(divergence->reference_loss == doctest::Approx(std::log(4.0)));
  CHECK(divergence->perturbed_loss == doctest::Approx(0.0));
  CHECK(divergence->kl == doctest::Approx(75.0 - std::log(4.0)));
  CHECK(divergence->same_top);
}

TEST_CASE("of equal logits the first counts") {
  CHECK(top_token(std::vector<float>{1, 3, 3}) == 1);
  CHECK_FALSE(compare_logits<float>(std::vector<float>{3, 3}, std::vector<float>{1, 3}, -1)->same_top);
}

TEST_CASE("what cannot be compared") {
  const std::vector<float> good = {1, 2};
  CHECK_FALSE(compare_logits<float>(good, std::vector<float>{1}, -1).ok());
  CHECK_FALSE(compare_logits<float>(std::vector<float>(), std::vector<float>(), -1).ok());
  CHECK_FALSE(compare_logits<float>(good, good, 2).ok());
  CHECK_FALSE(compare_logits<float>(good, std::vector<float>{1, std::nanf("")}, -1).ok());
  CHECK_FALSE(compare_logits<float>(std::vector<float>{std::nanf(""), 1}, good, -1).ok());
  CHECK_FALSE(compare_logits<float>(good, std::vector<float>{1, std::numeric_limits<float>::infinity()}, -1).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
