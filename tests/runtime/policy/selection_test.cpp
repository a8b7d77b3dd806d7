#include "runtime/policy/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Indices = std::vector<int32_t>;

// Sorted in full.
Indices brute_force(const std::vector<double>& scores, const std::vector<uint8_t>& always, int64_t count) {
  Indices order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept_always = [&](int32_t t) { return !always.empty() && always[static_cast<size_t>(t)] != 0; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (kept_always(a) != kept_always(b)) return kept_always(a);
    return !kept_always(a) && scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  const auto least = std::count_if(order.begin(), order.end(), kept_always);
  order.resize(static_cast<size_t>(std::clamp<int64_t>(count, least, std::ssize(scores))));
  std::sort(order.begin(), order.end());
  return order;
}

TEST_CASE("the same as sorting everything, with ties and infinities") {
  test::Random random(7);
  const double infinity = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2000; ++round) {
    const auto tokens = static_cast<size_t>(random.between(0, 40));
    const int64_t levels = random.between(1, 30);  // few: many ties
    std::vector<double> scores(tokens);
    for (double& score : scores) score = static_cast<double>(random.between(0, levels));
    if (tokens > 2 && random.chance(0.3)) scores[0] = scores[tokens / 2] = infinity;
    if (tokens > 2 && random.chance(0.3)) scores[1] = scores[tokens - 1] = -infinity;
    std::vector<uint8_t> always;
    if (random.chance(0.7)) {
      for (size_t t = 0; t < tokens; ++t) always.push_back(random.chance(0.2) ? 1 : 0);
    }
    const int64_t count = random.between(0, static_cast<int64_t>(tokens) + 2);
    REQUIRE(select_tokens(scores, always, count).value() == brute_force(scores, always, count));
  }
}

TEST_CASE("equal scores keep the first; none, one and all") {
  const std::vector<double> equal(6, 0.25);
  CHECK(select_tokens(equal, {}, 4).value() == Indices{0, 1, 2, 3});
  CHECK(select_tokens(equal, {}, 0).value().empty());
  CHECK(select_tokens(equal, {}, 6).value() == Indices{0, 1, 2, 3, 4, 5});
  CHECK(select_tokens(equal, {}, 7).value() == Indices{0, 1, 2, 3, 4, 5});
  const std::vector<uint8_t> always = {0, 0, 0, 0, 1, 1};
  CHECK(select_tokens(equal, always, 3).value() == Indices{0, 4, 5});
  CHECK(select_tokens(equal, always, 1).value() == Indices{4, 5});
  CHECK(select_tokens(std::vector<double>{7}, {}, 1).value() == Indices{0});
  CHECK(select_tokens({}, {}, 3).value().empty());
}

TEST_CASE("a NaN that competes is an error that says where") {
  std::vector<double> scores = {1, 2, std::nan(""), 4};
  for (const int64_t count : {0, 2, 4}) {
    const Status status = select_tokens(scores, {}, count).status();
    CHECK(status.code() == numeric_error("").code());
    CHECK(status.message().find("token 2") != std::string::npos);
  }
  const std::vector<uint8_t> always = {0, 0, 1, 0};
  CHECK(select_tokens(scores, always, 2).value() == Indices{2, 3});
}

TEST_CASE("wrong arguments are named") {
  const std::vector<double> scores(3);
  const std::vector<uint8_t> always(2);
  CHECK(argument_of(select_tokens(scores, always, 1).status()) == "always");
  CHECK(argument_of(select_tokens(scores, {}, -1).status()) == "count");
}

}  // namespace
}  // namespace foldkv
