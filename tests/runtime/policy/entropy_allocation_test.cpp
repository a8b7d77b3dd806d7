#include "runtime/policy/entropy_allocation.h"

#include <cmath>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

double weight_of(int64_t heads, std::vector<double> scores) {
  ScoreTable table(heads, std::ssize(scores) / heads);
  table.scores = std::move(scores);
  return entropy_weight(table).value();
}

TEST_CASE("entropy over that of equal shares") {
  CHECK(weight_of(2, {3, 3, 3, 3}) == doctest::Approx(1.0));
  CHECK(weight_of(2, {0, 0, 5, 0}) == 0.0);
  CHECK(weight_of(1, {2, 2, 0, 0}) == doctest::Approx(0.5));  // log 2 over log 4
  CHECK(weight_of(1, {20, 20, 0, 0}) == doctest::Approx(0.5));
  CHECK(weight_of(1, {0, 0}) == 1.0);
  CHECK(weight_of(1, {7}) == 1.0);
  CHECK(entropy_weight(ScoreTable(1, 0)).value() == 1.0);
}

TEST_CASE("the authors cut to whole tokens") {
  CHECK(truncated_budgets(std::vector<double>{1, 1, 1}, 100).value() == std::vector<int64_t>{33, 33, 33});
  CHECK(truncated_budgets(std::vector<double>{0.5, 0.25}, 9).value() == std::vector<int64_t>{6, 3});
  CHECK(truncated_budgets({}, 9).value().empty());
}

TEST_CASE("entropy: wrong numbers are named") {
  ScoreTable scores(1, 2);
  scores.scores = {1, -1};
  CHECK(argument_of(entropy_weight(scores).status()) == "scores[1]");
  scores.scores = {std::nan(""), 1};
  CHECK(argument_of(entropy_weight(scores).status()) == "scores[0]");
  CHECK(argument_of(truncated_budgets(std::vector<double>{1, HUGE_VAL}, 9).status()) == "weights[1]");
  CHECK(argument_of(truncated_budgets(std::vector<double>{0, 0}, 9).status()) == "weights");
  CHECK(argument_of(truncated_budgets(std::vector<double>{1}, -1).status()) == "total");
}

}  // namespace
}  // namespace foldkv
