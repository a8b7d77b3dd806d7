#include "runtime/policy/apportion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/policy/ripple_allocation.h"
#include "tests/support/golden.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

int64_t sum_of(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

TEST_CASE("golden/ripple.json") {
  const nlohmann::json file = test::read_golden("ripple");
  for (const auto& golden : file["cases"]) {
    const std::vector<double> weights = ripple_weights(test::numbers(golden["sensitivity"]),
                                                       golden["ratio"].get<double>(), golden["gamma"].get<double>())
                                            .value();
    const std::vector<double> expected = test::numbers(golden["weights"]);
    REQUIRE(weights.size() == expected.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      CHECK(std::abs(weights[i] - expected[i]) <= file["tolerance"].get<double>());
    }
    CHECK(apportion(weights, golden["lower"].get<int64_t>(), golden["upper"].get<int64_t>(),
                    golden["total"].get<int64_t>())
              .value() == golden["tokens"].get<Counts>());
  }
}

TEST_CASE("RippleKV's worked example") {
  const std::vector<double> weights = ripple_weights(std::vector<double>{.0030, .0524, .0100, .0200}, 1.5, 2.0).value();
  CHECK(apportion(weights, 0, 2000, 1000).value() == Counts{212, 319, 225, 244});
  CHECK(apportion(weights, 0, 300, 1000).value() == Counts{218, 300, 231, 251});
  CHECK(apportion(weights, 0, 280, 1000).value() == Counts{224, 280, 238, 258});
  CHECK(apportion(weights, 0, 240, 1000).value() == Counts{240, 240, 240, 240});
  CHECK(apportion(weights, 0, 2048, 2048).value() == Counts{435, 652, 461, 500});
}

struct Shares {
  std::vector<double> weights;
  Counts lower, upper;
};

Shares random_shares(test::Random& random) {
  Shares shares;
  const int64_t size = random.between(1, 12);
  for (int64_t i = 0; i < size; ++i) {
    shares.weights.push_back(random.chance(0.15) ? 0.0 : std::exp(random.uniform(0.0, 6.0) * random.normal()));
    shares.lower.push_back(random.chance(0.5) ? 0 : random.between(0, 40));
    shares.upper.push_back(shares.lower.back() + random.between(0, 100));
  }
  return shares;
}

TEST_CASE("sums are exact, caps are kept, and one factor explains the counts") {
  test::Random random(1);
  for (int round = 0; round < 3000; ++round) {
    const Shares shares = random_shares(random);
    const int64_t total = random.between(0, sum_of(shares.upper) + 20);
    const Counts counts = apportion(shares.weights, shares.lower, shares.upper, total).value();
    REQUIRE(sum_of(counts) == std::clamp(total, sum_of(shares.lower), sum_of(shares.upper)));
    // What a factor must lie between for each entry whose caps do not explain its count.
    double above = 0.0;
    double below = std::numeric_limits<double>::infinity();
    bool weighted_full = true;
    for (size_t i = 0; i < counts.size(); ++i) {
      REQUIRE(counts[i] >= shares.lower[i]);
      REQUIRE(counts[i] <= shares.upper[i]);
      if (shares.weights[i] == 0.0) continue;
      weighted_full = weighted_full && counts[i] == shares.upper[i];
      if (counts[i] > shares.lower[i]) above = std::max(above, static_cast<double>(counts[i] - 1) / shares.weights[i]);
      if (counts[i] < shares.upper[i]) below = std::min(below, static_cast<double>(counts[i] + 1) / shares.weights[i]);
    }
    CHECK(above <= below * (1.0 + 1e-12));
    const bool all_zero = std::ranges::count(shares.weights, 0.0) == std::ssize(shares.weights);
    for (size_t i = 0; i < counts.size(); ++i) {
      if (shares.weights[i] == 0.0 && counts[i] > shares.lower[i]) CHECK((weighted_full || all_zero));
    }
  }
}

TEST_CASE("a larger total takes at most one token from anyone, and sometimes does") {
  test::Random random(2);
  int64_t taken = 0;
  for (int round = 0; round < 300; ++round) {
    const Shares shares = random_shares(random);
    Counts before = apportion(shares.weights, shares.lower, shares.upper, 0).value();
    for (int64_t total = 1; total <= sum_of(shares.upper); ++total) {
      const Counts counts = apportion(shares.weights, shares.lower, shares.upper, total).value();
      for (size_t i = 0; i < counts.size(); ++i) {
        REQUIRE(counts[i] >= before[i] - 1);
        taken += counts[i] < before[i] ? 1 : 0;
      }
      before = counts;
    }
  }
  CHECK(taken > 0);
  // The smallest case: quotas (4.286, 4.286, 1.429) and then (4.714, 4.714, 1.571).
  CHECK(apportion(std::vector<double>{6, 6, 2}, 0, 100, 10).value() == Counts{4, 4, 2});
  CHECK(apportion(std::vector<double>{6, 6, 2}, 0, 100, 11).value() == Counts{5, 5, 1});
}

TEST_CASE("order matters for ties only, and larger weights never get less") {
  test::Random random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> weights(static_cast<size_t>(random.between(2, 30)));
    for (double& weight : weights) weight = random.uniform(0.1, 5.0);
    const int64_t upper = random.between(5, 60);
    const int64_t total = random.between(0, upper * std::ssize(weights));
    const Counts counts = apportion(weights, 0, upper, total).value();
    std::vector<double> reversed(weights.rbegin(), weights.rend());
    Counts back = apportion(reversed, 0, upper, total).value();
    std::ranges::reverse(back);
    CHECK(back == counts);  // random weights have no ties
    for (size_t i = 1; i < weights.size(); ++i) {
      if (weights[i] > weights[0]) CHECK(counts[i] >= counts[0]);
    }
  }
  CHECK(apportion(std::vector<double>{1, 1, 1}, 0, 9, 5).value() == Counts{2, 2, 1});
}

TEST_CASE("sums in binary decide no tie and no whole quota") {
  // 0.1 + 0.2 is above 0.3, 3 * 0.1 too: quotas 0.5, 1, 1.5 for total 3, whose halves tie.
  CHECK(apportion(std::vector<double>{0.1, 0.2, 0.1 + 0.2}, 0, 9, 3).value() == Counts{1, 1, 1});
  CHECK(apportion(std::vector<double>{0.3, 0.2, 0.1}, 0, 9, 3).value() == Counts{2, 1, 0});
  test::Random random(20);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> whole, tenths;
    for (int64_t i = random.between(2, 12); i > 0; --i) {
      whole.push_back(static_cast<double>(random.between(1, 12)));
      tenths.push_back(whole.back() * 0.1);
    }
    const int64_t total = random.between(1, 200);
    REQUIRE(apportion(tenths, 0, 100, total).value() == apportion(whole, 0, 100, total).value());
  }
  for (const int64_t total : {1'000, 999'999, 1'000'000'000}) {
    CHECK(apportion(std::vector<double>(10, 0.1), 0, total, total / 10 * 10).value() == Counts(10, total / 10));
  }
}

TEST_CASE("weights of 0, extremes and empty input") {
  CHECK(apportion({}, 0, 5, 7).value().empty());
  CHECK(apportion(std::vector<double>{3}, 0, 5, 4).value() == Counts{4});
  CHECK(apportion(std::vector<double>{0, 0, 0}, 0, 5, 4).value() == Counts{2, 1, 1});
  CHECK(apportion(std::vector<double>{0, 1, 0}, 0, 5, 4).value() == Counts{0, 4, 0});
  CHECK(apportion(std::vector<double>{0, 1, 0}, 0, 5, 8).value() == Counts{2, 5, 1});
  CHECK(apportion(std::vector<double>{0, 1, 0}, 1, 5, 4).value() == Counts{1, 2, 1});
  CHECK(apportion(std::vector<double>{1e300, 1e300, 1e-300}, 0, 50, 60).value() == Counts{30, 30, 0});
  CHECK(apportion(std::vector<double>{1, 5e-324}, 0, 50, 60).value() == Counts{50, 10});
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(apportion(std::vector<double>{1, 3}, 0, most, 8).value() == Counts{2, 6});
  CHECK(sum_of(apportion(std::vector<double>{1, 3, 7}, 0, most, int64_t{1} << 36).value()) == int64_t{1} << 36);
}

TEST_CASE("apportion: wrong arguments are named") {
  const std::vector<double> weights = {1, 2};
  const auto argument = [&](const std::vector<double>& w, const Counts& lower, const Counts& upper, int64_t total) {
    return argument_of(apportion(w, lower, upper, total).status());
  };
  CHECK(argument(weights, {0}, {1, 1}, 1) == "lower");
  CHECK(argument(weights, {0, 0}, {1, 1, 1}, 1) == "upper");
  CHECK(argument({1, -1}, {0, 0}, {1, 1}, 1) == "weights[1]");
  CHECK(argument({std::nan(""), 1}, {0, 0}, {1, 1}, 1) == "weights[0]");
  CHECK(argument({1, HUGE_VAL}, {0, 0}, {1, 1}, 1) == "weights[1]");
  CHECK(argument(weights, {0, -1}, {1, 1}, 1) == "lower[1]");
  CHECK(argument(weights, {2, 0}, {1, 1}, 1) == "upper[0]");
  CHECK(argument(weights, {0, 0}, {1, 1}, -1) == "total");
  CHECK(argument(weights, {0, 0}, {1, 1}, (int64_t{1} << 36) + 1) == "total");
  CHECK(argument_of(apportion(std::vector<double>(65'537, 1.0), 0, 1, 1).status()) == "weights");
}

}  // namespace
}  // namespace foldkv
