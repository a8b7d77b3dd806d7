#include "runtime/policy/ripple_allocation.h"

#include <cmath>
#include <limits>

#include "doctest/doctest.h"
#include "runtime/policy/apportion.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

// methods.md section 2.
const std::vector<double> kFive = {.0030, .0180, .0524, .0090, .0110};

void check_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) CHECK(std::abs(actual[i] - expected[i]) < 5.1e-5);
}

TEST_CASE("both readings of the clip") {
  const auto literal = ripple_weights(kFive, 1.5, 1.25).value();
  check_near(literal, {.9092, 1.0283, 1.1365, .9551, .9709});
  CHECK(apportion(literal, 0, 5000, 4095).value() == Counts{745, 842, 931, 782, 795});
  check_near(ripple_weights(kFive, 1.5, 1.25, RippleOrder::kNormalizeFirst).value(),
             {.8792, .9944, 1.2638, .9236, .9389});
  const auto free = ripple_weights(kFive, 1.5, 2.0).value();
  check_near(free, {.8697, .9836, 1.3045, .9136, .9287});
  CHECK(apportion(free, 0, 5000, 4095).value() == Counts{712, 806, 1068, 748, 761});
  check_near(ripple_weights(kFive, 1.5, 2.0, RippleOrder::kNormalizeFirst).value(), free);
}

TEST_CASE("ratio 1 and equal layers make no difference") {
  CHECK(ripple_weights(kFive, 1.0, 2.0).value() == std::vector<double>(5, 1.0));
  CHECK(apportion(ripple_weights(kFive, 1.0, 2.0).value(), 0, 5000, 4095).value() == Counts(5, 819));
  CHECK(ripple_weights(std::vector<double>(3, 0.2), 1.5, 2.0).value() == std::vector<double>(3, 1.0));
  CHECK(ripple_weights(std::vector<double>{0.7}, 1.5, 2.0).value() == std::vector<double>{1.0});
  CHECK(ripple_weights({}, 1.5, 2.0).value().empty());
}

TEST_CASE("scales and offsets of sensitivities do not matter, and the ratio is kept") {
  const std::vector<double> weights = ripple_weights(kFive, 1.5, 2.0).value();
  std::vector<double> other;
  for (const double sensitivity : kFive) other.push_back(100.0 * sensitivity + 7.0);
  check_near(ripple_weights(other, 1.5, 2.0).value(), weights);
  CHECK(weights[2] / weights[0] == doctest::Approx(1.5));
}

TEST_CASE("ripple: wrong arguments are named") {
  const auto argument = [](std::vector<double> sensitivities, double ratio, double gamma) {
    return argument_of(ripple_weights(sensitivities, ratio, gamma).status());
  };
  CHECK(argument({1, -1}, 1.5, 2) == "sensitivities[1]");
  CHECK(argument({std::nan(""), 1}, 1.5, 2) == "sensitivities[0]");
  CHECK(argument({1, HUGE_VAL}, 1.5, 2) == "sensitivities[1]");
  CHECK(argument({1, 2}, 0.9, 2) == "ratio");
  CHECK(argument({1, 2}, std::nan(""), 2) == "ratio");
  CHECK(argument({1, 2}, 1.5, 0.5) == "gamma");
  CHECK(argument_of(ripple_weights(kFive, 1.5, 2.0, static_cast<RippleOrder>(3)).status()) == "order");
}

}  // namespace
}  // namespace foldkv
