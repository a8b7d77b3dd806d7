#include "runtime/calibration/shrinkage.h"

#include <cstddef>
#include <limits>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

constexpr double kUnread = std::numeric_limits<double>::quiet_NaN();  // the upper triangle

TEST_CASE("by hand: one direction of four, three degrees of freedom") {
  // tr S = 8, tr S^2 = 64, p = 4, n = 3: (1 / 2 * 64 + 64) / ((3 + 1 / 2) (64 - 16)) = 96 / 168.
  const std::vector<double> covariance = {8, kUnread, kUnread, kUnread, 0, 0, kUnread, kUnread,
                                          0, 0,       0,       kUnread, 0, 0, 0,       0};
  CHECK(oracle_shrinkage(covariance, 4, 3) == doctest::Approx(4.0 / 7.0).epsilon(1e-14));
  std::vector<double> shrunk = covariance;
  shrink_covariance(shrunk, 4, 4.0 / 7.0);
  // 3 / 7 of it and 4 / 7 of the mean variance, 2.
  CHECK(shrunk[0] == doctest::Approx(32.0 / 7.0).epsilon(1e-14));
  for (size_t i = 1; i < 4; ++i) CHECK(shrunk[5 * i] == doctest::Approx(8.0 / 7.0).epsilon(1e-14));
  for (size_t at : {4, 8, 9, 12, 13, 14}) CHECK(shrunk[at] == 0.0);
}

TEST_CASE("by hand: numbers beside the diagonal count twice") {
  // tr S = 6, tr S^2 = 1 + 4 + 9 + 2 (1 + 4 + 1) = 26, p = 3, n = 10: (26 / 3 + 36) / ((11 - 2 / 3) (26 - 12)).
  const std::vector<double> covariance = {1, kUnread, kUnread, 1, 2, kUnread, 2, -1, 3};
  CHECK(oracle_shrinkage(covariance, 3, 10) == doctest::Approx(134.0 / 434.0).epsilon(1e-14));
  std::vector<double> shrunk = covariance;
  shrink_covariance(shrunk, 3, 0.25);
  CHECK(shrunk[0] == doctest::Approx(0.75 + 0.5));
  CHECK(shrunk[4] == doctest::Approx(1.5 + 0.5));
  CHECK(shrunk[8] == doctest::Approx(2.25 + 0.5));
  CHECK(shrunk[3] == doctest::Approx(0.75));
  CHECK(shrunk[6] == doctest::Approx(1.5));
  CHECK(shrunk[7] == doctest::Approx(-0.75));
}

TEST_CASE("the share falls with the rows and never leaves 0 to 1") {
  const std::vector<double> covariance = {4, kUnread, 0, 1};
  double before = 1.0;
  for (int64_t n : {1, 4, 16, 256, 1 << 20}) {
    const double share = oracle_shrinkage(covariance, 2, n);
    CHECK(share <= before);
    CHECK(share > 0.0);
    before = share;
  }
  CHECK(oracle_shrinkage(covariance, 2, 1) == 1.0);
  CHECK(before < 1e-4);
}

TEST_CASE("a multiple of the identity is that already, and so is nothing at all") {
  for (double variance : {3.0, 0.0}) {
    std::vector<double> covariance = {variance, kUnread, 0.0, variance};
    CHECK(oracle_shrinkage(covariance, 2, 5) == 1.0);
    shrink_covariance(covariance, 2, 1.0);
    CHECK(covariance[0] == variance);
    CHECK(covariance[2] == 0.0);
    CHECK(covariance[3] == variance);
  }
}

}  // namespace
}  // namespace foldkv
