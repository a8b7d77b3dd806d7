#include "runtime/policy/value_weighting.h"

#include <cmath>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

ScoreTable table_of(int64_t heads, std::vector<double> scores) {
  ScoreTable table(heads, std::ssize(scores) / heads);
  table.scores = std::move(scores);
  return table;
}

TEST_CASE("score plus epsilon, times the norm of the head's own or its KV head's value") {
  const ScoreTable scores = table_of(2, {1, 2, 3, 4});
  CHECK(weigh_by_norms(scores, 0.5, table_of(2, {2, 4, 6, 8})).value().scores == std::vector<double>{3, 10, 21, 36});
  CHECK(weigh_by_norms(scores, 0.0, table_of(1, {2, 4})).value().scores == std::vector<double>{2, 8, 6, 16});
}

TEST_CASE("epsilon lets large values win where nothing is looked at") {
  const ScoreTable scores = table_of(1, {0, 0, 1e-3});
  const ScoreTable weighted = weigh_by_norms(scores, 1e-4, table_of(1, {1, 100, 1})).value();
  CHECK(weighted.scores[1] > weighted.scores[2]);
  CHECK(weigh_by_norms(scores, 0.0, table_of(1, {1, 100, 1})).value().scores[1] == 0.0);
}

TEST_CASE("a head's constant keeps its order and sets it against others") {
  const ScoreTable scores = table_of(2, {1, 2, 3, 4});
  CHECK(weigh_by_head_maximum(scores, 0.0, table_of(2, {5, 3, 1, 2})).value().scores ==
        std::vector<double>{5, 10, 6, 8});
  CHECK(weigh_by_head_maximum(ScoreTable(2, 0), 0.0, ScoreTable(2, 0)).value().scores.empty());
}

TEST_CASE("scores below their head's mean are raised to it") {
  CHECK(raise_to_head_mean(table_of(2, {1, 5, 0, 8, 8, 8})).value().scores == std::vector<double>{2, 5, 2, 8, 8, 8});
  CHECK(raise_to_head_mean(ScoreTable(1, 0)).value().scores.empty());
}

TEST_CASE("norms of another shape are refused") {
  CHECK(argument_of(weigh_by_norms(ScoreTable(4, 2), 0.0, ScoreTable(3, 2)).status()) == "norms");
  CHECK(argument_of(weigh_by_norms(ScoreTable(4, 2), 0.0, ScoreTable(4, 3)).status()) == "norms");
  CHECK(argument_of(weigh_by_norms(ScoreTable(4, 2), 0.0, ScoreTable()).status()) == "norms");
  CHECK(argument_of(weigh_by_head_maximum(ScoreTable(4, 2), 0.0, ScoreTable(8, 2)).status()) == "norms");
}

}  // namespace
}  // namespace foldkv
