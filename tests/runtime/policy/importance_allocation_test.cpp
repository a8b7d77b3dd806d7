#include "runtime/policy/importance_allocation.h"

#include <cmath>
#include <numeric>

#include "doctest/doctest.h"
#include "runtime/policy/apportion.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

Counts exact(const ImportanceShape& shape, const std::vector<double>& importances) {
  return apportion(importance_weights(shape, importances).value(), shape.floor,
                   importance_cap(shape, std::ssize(importances)).value(), shape.total)
      .value();
}

TEST_CASE("CompressKV's worked example") {
  const ImportanceShape shape{1024, 32, 3.0};
  const std::vector<double> importances = {.1, .2, .3, .4};
  CHECK(importance_author_budgets(shape, importances).value() == Counts{122, 211, 301, 390});
  CHECK(exact(shape, importances) == Counts{122, 211, 301, 390});
  CHECK(importance_cap(shape, 4).value() == 768);
}

TEST_CASE("the authors mend their sum in order of importance") {
  // Quotas 32 + 56 / 3 each, 50.67: 51 thrice, one too many.
  CHECK(importance_author_budgets({152, 32, 3.0}, std::vector<double>{1, 1, 1}).value() == Counts{50, 51, 51});
  // Layer 2 would have 32 + 904; 768 are its cap, and 168 go to all below it in turn, the more important first.
  CHECK(importance_author_budgets({1032, 32, 2.5}, std::vector<double>{0, 0, 1, 0}).value() ==
        Counts{129, 129, 645, 129});
  // 1.5, 0.51 and 0.99 beside the floor: 2, 1, 1, and the most important layer gives one back.
  CHECK(importance_author_budgets({99, 32, 3.0}, std::vector<double>{.5, .17, .33}).value() == Counts{33, 33, 33});
  // What cannot be spent is left, what cannot be saved too.
  CHECK(importance_author_budgets({100, 32, 1.0}, std::vector<double>{1, 2, 3}).value() == Counts{33, 33, 33});
  CHECK(importance_author_budgets({10, 32, 3.0}, std::vector<double>{1, 2}).value() == Counts{32, 32});
}

TEST_CASE("exact and authors' budgets keep sum and caps") {
  test::Random random(12);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> importances(static_cast<size_t>(random.between(1, 40)));
    for (double& importance : importances) importance = std::exp(random.normal());
    const int64_t layers = std::ssize(importances);
    const ImportanceShape shape{layers * random.between(33, 600), 32, 3.0};
    const int64_t cap = importance_cap(shape, layers).value();
    for (const Counts& budgets : {exact(shape, importances), importance_author_budgets(shape, importances).value()}) {
      CHECK(std::accumulate(budgets.begin(), budgets.end(), int64_t{0}) == shape.total);
      for (const int64_t budget : budgets) CHECK((budget >= 32 && budget <= cap));
    }
  }
  CHECK(importance_weights({400, 32, 3.0}, std::vector<double>{0, 0}).value() == std::vector<double>{200, 200});
  CHECK(importance_weights({400, 32, 3.0}, {}).value().empty());
  CHECK(importance_author_budgets({400, 32, 3.0}, {}).value().empty());
}

TEST_CASE("importance: wrong arguments are named") {
  const auto argument = [](const ImportanceShape& shape, std::vector<double> importances) {
    return argument_of(importance_author_budgets(shape, importances).status());
  };
  CHECK(argument({100, 32, 3.0}, {1, -1}) == "importances[1]");
  CHECK(argument({100, 32, 3.0}, {std::nan("")}) == "importances[0]");
  CHECK(argument({-1, 32, 3.0}, {1}) == "total");
  CHECK(argument({100, -1, 3.0}, {1}) == "floor");
  CHECK(argument({100, 32, 0.5}, {1}) == "most_ratio");
  CHECK(argument_of(importance_cap({100, 32, 3.0}, 0).status()) == "layers");
}

}  // namespace
}  // namespace foldkv
