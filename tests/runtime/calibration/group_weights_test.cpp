#include "runtime/calibration/group_weights.h"

#include <cmath>
#include <limits>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

TEST_CASE("measured over expected, scaled to a mean of 1") {
  const SideNumbers weights = group_weights({{2.0, 3.0}, {8.0, 1.0}}, {{1.0, 3.0}, {2.0, 1.0}}).value();
  // Quotients 2, 1, 4, 1: their mean is 2.
  CHECK(weights == SideNumbers{{1.0, 0.5}, {2.0, 0.5}});
}

TEST_CASE("a common factor is no weight") {
  const SideNumbers expected = {{0.5, 2.0}, {0.125, 4.0}, {1.0, 1.0}};
  SideNumbers measured = expected;
  for (auto& sides : measured) {
    for (double& number : sides) number *= 0.25;
  }
  CHECK(group_weights(measured, expected).value() == SideNumbers(3, {1.0, 1.0}));
}

TEST_CASE("numbers that give no weight are named") {
  const auto refused = [](const SideNumbers& measured, const SideNumbers& expected, const char* argument) {
    CHECK(argument_of(group_weights(measured, expected).status()) == argument);
  };
  const SideNumbers good = {{1.0, 1.0}, {1.0, 1.0}};
  refused({{1.0, 1.0}, {0.0, 1.0}}, good, "measured[1][0]");
  refused({{1.0, -1.0}, {1.0, 1.0}}, good, "measured[0][1]");
  refused({{std::nan(""), 1.0}, {1.0, 1.0}}, good, "measured[0][0]");
  refused(good, {{1.0, 1.0}, {1.0, std::numeric_limits<double>::infinity()}}, "expected[1][1]");
  refused(good, {{0.0, 1.0}, {1.0, 1.0}}, "expected[0][0]");
  refused({{1e300, 1.0}, {1.0, 1.0}}, {{1e-300, 1.0}, {1.0, 1.0}}, "weights[0][0]");
}

}  // namespace
}  // namespace foldkv
