#include "runtime/policy/group_budgets.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Groups = std::vector<std::vector<int32_t>>;
using Counts = std::vector<int64_t>;

TEST_CASE("a group weighs what its layers weigh together") {
  const std::vector<double> weights = {1, 2, 3, 4, 5};
  const Groups groups = {{0, 1}, {2, 4}, {3}};
  CHECK(group_weight_sums(weights, groups).value() == std::vector<double>{3, 8, 4});
  // 150 tokens of layers: 30, 80, 40.
  CHECK(group_budgets(weights, groups, 0, 1000, 150).value() == Counts{15, 40, 40});
  CHECK(group_budgets(weights, groups, 20, 30, 150).value() == Counts{30, 30, 30});
  CHECK(group_budgets(weights, groups, 20, 30, 10).value() == Counts{20, 20, 20});
  CHECK(group_budgets(weights, {}, 0, 10, 5).value().empty());
}

TEST_CASE("layers of all groups together are within a token each of the total") {
  test::Random random(13);
  for (int round = 0; round < 200; ++round) {
    Groups groups;
    std::vector<double> weights;
    const int64_t count = random.between(1, 6);
    for (int64_t group = 0; group < count; ++group) {
      groups.emplace_back();
      for (int64_t i = random.between(1, 4); i > 0; --i) {
        groups.back().push_back(static_cast<int32_t>(weights.size()));
        weights.push_back(random.uniform(0.5, 2.0));
      }
    }
    const int64_t layers = std::ssize(weights);
    const int64_t total = random.between(10, 500) * layers;
    const Counts budgets = group_budgets(weights, groups, 1, 1000, total).value();
    int64_t sum = 0;
    for (size_t group = 0; group < groups.size(); ++group) sum += budgets[group] * std::ssize(groups[group]);
    CHECK(sum <= total);
    CHECK(sum > total - layers);
  }
}

TEST_CASE("group: wrong arguments are named") {
  const std::vector<double> weights = {1, 2};
  CHECK(argument_of(group_weight_sums(weights, Groups{{0}, {1, 2}}).status()) == "groups[1].layers[1]");
  CHECK(argument_of(group_budgets(weights, Groups{{0}, {}}, 0, 5, 5).status()) == "groups[1]");
  CHECK(argument_of(group_budgets(weights, Groups{{0}}, -1, 5, 5).status()) == "lower");
  CHECK(argument_of(group_budgets(weights, Groups{{0}}, 6, 5, 5).status()) == "upper");
  CHECK(argument_of(group_budgets(weights, Groups{{0}}, 0, 5, -5).status()) == "total");
}

}  // namespace
}  // namespace foldkv
