#include "samples/lab/bootstrap.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/uniform_random.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("equal trials leave no doubt") {
  const MeanInterval interval = bootstrap_mean(std::vector<double>(12, 0.75), 2000, 1);
  CHECK(interval.mean == 0.75);
  CHECK(interval.low == 0.75);
  CHECK(interval.high == 0.75);
}

TEST_CASE("of zeros and ones the interval is the binomial distribution's") {
  std::vector<double> scores(100, 0.0);
  for (size_t i = 0; i < 30; ++i) scores[i] = 1.0;
  const MeanInterval interval = bootstrap_mean(scores, 2000, 7);
  CHECK(interval.mean == doctest::Approx(0.3));
  const double reach = 1.96 * std::sqrt(0.3 * 0.7 / 100);
  CHECK(std::abs(interval.low - (0.3 - reach)) < 0.02);
  CHECK(std::abs(interval.high - (0.3 + reach)) < 0.02);
}

TEST_CASE("a seed gives one interval, one resample no width") {
  const std::vector<double> scores = {0.0, 0.2, 0.4, 1.0, 0.6};
  CHECK(bootstrap_mean(scores, 50, 3).low == bootstrap_mean(scores, 50, 3).low);
  const MeanInterval single = bootstrap_mean(scores, 1, 3);
  CHECK(single.low == single.high);
  CHECK(single.mean == doctest::Approx(0.44));
}

TEST_CASE("draws are in range, and every number comes up as often") {
  UniformRandom random(5);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 7000; ++i) ++counts[random.below(7)];
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);
  // The generator's 10,000th number of its default seed is in the C++ standard.
  UniformRandom standard(5489);
  uint64_t last = 0;
  for (int i = 0; i < 10000; ++i) last = standard.below(uint64_t{1} << 63);
  CHECK(last == (uint64_t{9981545732273789042u} & ((uint64_t{1} << 63) - 1)));
}

}  // namespace
}  // namespace foldkv_lab::test
