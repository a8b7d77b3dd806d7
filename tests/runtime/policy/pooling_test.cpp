#include "runtime/policy/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

ScoreTable table_of(std::vector<double> scores) {
  ScoreTable table(1, std::ssize(scores));
  table.scores = std::move(scores);
  return table;
}

std::vector<double> pooled(std::vector<double> scores, Pooling pooling, int64_t width) {
  return pool_tokens(table_of(std::move(scores)), pooling, width).value().scores;
}

TEST_CASE("every neighbour counts, over random shapes") {
  test::Random random(5);
  for (int round = 0; round < 300; ++round) {
    ScoreTable scores(random.between(1, 3), random.between(0, 40));
    for (double& score : scores.scores) score = random.chance(0.2) ? 0.5 : random.normal();
    const int64_t half = random.between(0, 25);
    const ScoreTable average = pool_tokens(scores, Pooling::kAverage, 2 * half + 1).value();
    const ScoreTable maximum = pool_tokens(scores, Pooling::kMaximum, 2 * half + 1).value();
    for (int64_t head = 0; head < scores.heads; ++head) {
      for (int64_t t = 0; t < scores.tokens; ++t) {
        double sum = 0.0;
        double most = -std::numeric_limits<double>::infinity();
        for (int64_t u = t - half; u <= t + half; ++u) {
          const bool inside = u >= 0 && u < scores.tokens;
          sum += inside ? scores.head(head)[static_cast<size_t>(u)] : 0.0;
          if (inside) most = std::max(most, scores.head(head)[static_cast<size_t>(u)]);
        }
        REQUIRE(maximum.head(head)[static_cast<size_t>(t)] == most);
        REQUIRE(std::abs(average.head(head)[static_cast<size_t>(t)] - sum / static_cast<double>(2 * half + 1)) < 1e-12);
      }
    }
    CHECK(pool_tokens(scores, Pooling::kNone, 0).value() == scores);
    CHECK(pool_tokens(scores, Pooling::kMaximum, 1).value() == scores);
    CHECK(pool_tokens(scores, Pooling::kAverage, 1).value() == scores);
  }
}

TEST_CASE("the ends, one token, and widths beyond everything") {
  CHECK(pooled({3, 0, 0, 6}, Pooling::kAverage, 3) == std::vector<double>{1, 1, 2, 2});
  CHECK(pooled({3, 0, 0, 6}, Pooling::kMaximum, 3) == std::vector<double>{3, 3, 6, 6});
  CHECK(pooled({-3}, Pooling::kMaximum, 7) == std::vector<double>{-3});
  CHECK(pooled({-3}, Pooling::kAverage, 3) == std::vector<double>{-1});
  CHECK(pooled({1, 5, 2}, Pooling::kMaximum, (int64_t{1} << 40) + 1) == std::vector<double>{5, 5, 5});
  CHECK(pooled({}, Pooling::kMaximum, 5).empty());
}

TEST_CASE("infinities stay, and a NaN reaches its neighbours and nobody else") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(pooled({-infinity, -infinity, 1, infinity}, Pooling::kMaximum, 3) ==
        std::vector<double>{-infinity, 1, infinity, infinity});
  for (const Pooling pooling : {Pooling::kAverage, Pooling::kMaximum}) {
    for (size_t at = 0; at < 9; ++at) {
      std::vector<double> scores = {1, 2, 3, 4, 5, 4, 3, 2, 1};
      scores[at] = std::nan("");
      const std::vector<double> result = pooled(scores, pooling, 5);
      for (size_t t = 0; t < 9; ++t) CHECK(std::isnan(result[t]) == (std::max(t, at) - std::min(t, at) <= 2));
    }
  }
}

TEST_CASE("wrong widths and kinds are refused by name") {
  const ScoreTable scores(1, 4);
  CHECK(argument_of(pool_tokens(scores, Pooling::kAverage, 4).status()) == "pool_width");
  CHECK(argument_of(pool_tokens(scores, Pooling::kMaximum, 0).status()) == "pool_width");
  CHECK(argument_of(pool_tokens(scores, Pooling::kMaximum, -1).status()) == "pool_width");
  CHECK(argument_of(pool_tokens(scores, static_cast<Pooling>(4), 3).status()) == "pooling");
  ScoreTable broken = scores;
  broken.tokens = 5;
  CHECK(argument_of(pool_tokens(broken, Pooling::kMaximum, 3).status()) == "scores");
}

}  // namespace
}  // namespace foldkv
