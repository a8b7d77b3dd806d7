#include "runtime/policy/dynamic_allocation.h"

#include <numeric>

#include "doctest/doctest.h"
#include "runtime/policy/apportion.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

TEST_CASE("a layer's cap is ten times the average, within the prompt") {
  CHECK(dynamic_cap({4, 100, 5000, 10.0}).value() == 1000);
  CHECK(dynamic_cap({4, 100, 700, 10.0}).value() == 700);
  CHECK(dynamic_cap({4, 0, 700, 10.0}).value() == 0);
}

TEST_CASE("the authors' rounding, by hand") {
  // Counts over 3 layers 20, 9, 3; cap 100 in shares of 32: 62, 28, 9; over 99 / 30: 18, 8, 2, and 2 for the last.
  CHECK(dynamic_author_budgets({3, 10, 1000, 10.0}, Counts{60, 27, 11}).value() == Counts{18, 8, 4});
  // Two of four layers so far: budgets are those of the whole model.
  CHECK(dynamic_author_budgets({4, 10, 1000, 10.0}, Counts{30, 10}).value() == Counts{30, 10});
  // The prompt cuts a layer that had more.
  CHECK(dynamic_author_budgets({2, 10, 12, 10.0}, Counts{90, 10}).value() == Counts{12, 2});
  CHECK(dynamic_author_budgets({2, 0, 12, 10.0}, Counts{90, 10}).value() == Counts{0, 0});
  CHECK(dynamic_author_budgets({2, 5, 12, 10.0}, Counts{1, 1}).value() == Counts{0, 10});  // counts below the layers
}

TEST_CASE("the authors' sum is the budget unless the prompt cuts it; the exact one is within a layer's token of it") {
  test::Random random(11);
  for (int round = 0; round < 300; ++round) {
    const int64_t layers = random.between(1, 32);
    const DynamicShape shape{layers, random.between(50, 500), 1'000'000, 10.0};
    Counts counts;
    for (int64_t layer = 0; layer < layers; ++layer) counts.push_back(random.between(1, 1000) * layers);
    const Counts author = dynamic_author_budgets(shape, counts).value();
    CHECK(std::accumulate(author.begin(), author.end(), int64_t{0}) == layers * shape.base);
    const std::vector<double> weights(counts.begin(), counts.end());
    const Counts exact = apportion(weights, 0, shape.tokens, layers * shape.base).value();
    for (size_t layer = 0; layer + 1 < counts.size(); ++layer) {
      // Shares of the cap are cut by a token before they are scaled, here by a tenth of the layers and more.
      CHECK(std::abs(author[layer] - exact[layer]) <= 2 + layers / 10 + exact[layer] / 10);
    }
  }
}

TEST_CASE("dynamic: wrong arguments are named") {
  const auto argument = [](const DynamicShape& shape, const Counts& counts) {
    return argument_of(dynamic_author_budgets(shape, counts).status());
  };
  CHECK(argument({1, 10, 100, 10.0}, {1, 1}) == "layers");
  CHECK(argument({2, -1, 100, 10.0}, {1, 1}) == "base");
  CHECK(argument({2, 10, -1, 10.0}, {1, 1}) == "tokens");
  CHECK(argument({2, 10, 100, 0.5}, {1, 1}) == "most_ratio");
  CHECK(argument({2, 10, 100, 10.0}, {}) == "counts");
  CHECK(argument({2, 10, 100, 10.0}, {1, -1}) == "counts");
  CHECK(argument({2, 10, 100, 10.0}, {0, 0}) == "counts");
}

}  // namespace
}  // namespace foldkv
