#include "samples/lab/rank_correlation.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

using Numbers = std::vector<double>;

TEST_CASE("equal numbers share the mean of their ranks") {
  CHECK(ranks_of(Numbers{10, 30, 20}) == Numbers{1, 3, 2});
  CHECK(ranks_of(Numbers{5, 1, 5, 0, 5}) == Numbers{4, 2, 4, 1, 4});
  CHECK(ranks_of(Numbers{2, 2}) == Numbers{1.5, 1.5});
  CHECK(ranks_of(Numbers{}).empty());
}

TEST_CASE("the same order, the opposite, none") {
  CHECK(rank_correlation(Numbers{1, 2, 3, 4}, Numbers{0.1, 5, 7, 1000}) == doctest::Approx(1.0));
  CHECK(rank_correlation(Numbers{1, 2, 3, 4}, Numbers{3, 2, 1, -8}) == doctest::Approx(-1.0));
  CHECK(rank_correlation(Numbers{1, 2, 3}, Numbers{7, 7, 7}) == 0.0);
  CHECK(rank_correlation(Numbers{1}, Numbers{2}) == 0.0);
  CHECK(rank_correlation(Numbers{}, Numbers{}) == 0.0);
}

// By hand: without ties 1 - 6 * (sum of squared differences of ranks) / (n^3 - n), with ties the correlation of the
// ranks 1 2 3 4 5 and 1 2 3.5 5 3.5, whose deviations from 3 give 8 / sqrt(10 * 9.5).
TEST_CASE("in between") {
  CHECK(rank_correlation(Numbers{1, 2, 3, 4, 5}, Numbers{2, 1, 4, 3, 5}) == doctest::Approx(1.0 - 6.0 * 4.0 / 120.0));
  CHECK(rank_correlation(Numbers{1, 2, 3, 4, 5}, Numbers{5, 6, 7, 8, 7}) == doctest::Approx(8.0 / std::sqrt(95.0)));
}

}  // namespace
}  // namespace foldkv_lab::test
