#include "runtime/policy/joint_allocation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

// All scores sorted, heads and tokens rising among equal ones; floors first.
Counts brute_force(const ScoreTable& scores, const std::vector<uint8_t>& always, int64_t floor, int64_t total) {
  std::vector<std::tuple<double, int64_t, int64_t>> order;
  for (int64_t head = 0; head < scores.heads; ++head) {
    for (int64_t t = 0; t < scores.tokens; ++t) {
      if (!always.empty() && always[static_cast<size_t>(t)] != 0) continue;
      order.emplace_back(-scores.head(head)[static_cast<size_t>(t)], head, t);
    }
  }
  std::sort(order.begin(), order.end());
  Counts counts(static_cast<size_t>(scores.heads));
  std::vector<std::tuple<double, int64_t, int64_t>> rest;
  for (const auto& entry : order) {
    int64_t& count = counts[static_cast<size_t>(std::get<1>(entry))];
    if (count < floor) {
      ++count;
      --total;
    } else {
      rest.push_back(entry);
    }
  }
  for (const auto& entry : rest) counts[static_cast<size_t>(std::get<1>(entry))] += total-- > 0 ? 1 : 0;
  return counts;
}

TEST_CASE("the same as sorting all heads together") {
  test::Random random(10);
  for (int round = 0; round < 1000; ++round) {
    ScoreTable scores(random.between(1, 5), random.between(0, 20));
    const int64_t levels = random.between(1, 40);
    for (double& score : scores.scores) score = static_cast<double>(random.between(0, levels));
    std::vector<uint8_t> always;
    if (random.chance(0.5)) {
      for (int64_t t = 0; t < scores.tokens; ++t) always.push_back(random.chance(0.3) ? 1 : 0);
    }
    const int64_t floor = random.between(0, 6);
    const int64_t total = random.between(0, scores.heads * scores.tokens + 3);
    REQUIRE(count_joint_best(scores, always, floor, total).value() == brute_force(scores, always, floor, total));
  }
}

TEST_CASE("equal scores go to the lower heads; floors, none and all") {
  ScoreTable equal(3, 4);
  CHECK(count_joint_best(equal, {}, 0, 5).value() == Counts{4, 1, 0});
  CHECK(count_joint_best(equal, {}, 1, 5).value() == Counts{3, 1, 1});
  CHECK(count_joint_best(equal, {}, 2, 5).value() == Counts{2, 2, 2});  // floors beyond the total
  CHECK(count_joint_best(equal, {}, 0, 0).value() == Counts{0, 0, 0});
  CHECK(count_joint_best(equal, {}, 9, 100).value() == Counts{4, 4, 4});
  CHECK(count_joint_best(ScoreTable(), {}, 1, 3).value().empty());
  CHECK(count_joint_best(ScoreTable(2, 0), {}, 1, 3).value() == Counts{0, 0});
}

TEST_CASE("AdaKV's worked example") {
  CHECK(ada_author_budgets(Counts{250, 90, 40, 20}, 100, 0.2).value() == Counts{220, 92, 52, 36});
  // Halves to the even number, twice: two tokens are missing.
  CHECK(ada_author_budgets(Counts{3, 5}, 5, 0.5).value() == Counts{4, 4});
}

TEST_CASE("joint: wrong arguments are named") {
  ScoreTable scores(2, 3);
  CHECK(argument_of(count_joint_best(scores, {}, -1, 3).status()) == "floor");
  CHECK(argument_of(count_joint_best(scores, {}, 0, -3).status()) == "total");
  CHECK(argument_of(count_joint_best(scores, std::vector<uint8_t>(2), 0, 3).status()) == "always");
  scores.scores[4] = std::nan("");
  CHECK(count_joint_best(scores, {}, 0, 3).status().code() == numeric_error("").code());
  scores.scores.pop_back();
  CHECK(argument_of(count_joint_best(scores, {}, 0, 3).status()) == "scores");
  CHECK(argument_of(ada_author_budgets(Counts{1}, 10, 1.2).status()) == "floor_share");
  CHECK(argument_of(ada_author_budgets(Counts{1}, -10, 0.2).status()) == "base");
}

}  // namespace
}  // namespace foldkv
