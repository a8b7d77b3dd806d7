#include "runtime/policy/pyramid_allocation.h"

#include <numeric>

#include "doctest/doctest.h"
#include "runtime/policy/apportion.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

TEST_CASE("PyramidKV's worked example") {
  const PyramidShape shape{32, 100'000, 512, 32, 20};
  const Counts author = pyramid_author_budgets(shape).value();
  CHECK(author[0] == 936);
  CHECK(author[1] == 907);
  CHECK(author[31] == 37);
  CHECK(std::accumulate(author.begin(), author.end(), int64_t{0}) == 15'568);
  const std::vector<double> weights = pyramid_weights(shape).value();
  CHECK(weights[0] == 936.0);
  CHECK(weights[31] == 24.0);
  const Counts exact = apportion(weights, 0, 100'000 - 32, 32 * 480).value();
  CHECK(exact[0] == 936);
  CHECK(exact[31] == 24);
  CHECK(std::accumulate(exact.begin(), exact.end(), int64_t{0}) == 15'360);
}

TEST_CASE("short prompts flatten the pyramid") {
  const PyramidShape shape{3, 132, 92, 32, 20};  // 100 tokens before the window, 60 on average
  CHECK(pyramid_author_budgets(shape).value() == Counts{100, 60, 20});
  CHECK(pyramid_weights(shape).value() == std::vector<double>{100, 60, 20});
  // Fewer than 2 * base tokens, and no more than the capacity.
  CHECK(pyramid_author_budgets({3, 110, 92, 32, 20}).value() == Counts{60, 60, 60});
  CHECK(pyramid_author_budgets({3, 80, 92, 32, 20}).value() == Counts{48, 48, 48});
  CHECK(pyramid_author_budgets({1, 1000, 92, 32, 20}).value() == Counts{60});
  CHECK(pyramid_author_budgets({2, 1000, 92, 32, 1}).value() == Counts{60, 60});
}

TEST_CASE("weights average to the base and never rise") {
  test::Random random(9);
  for (int round = 0; round < 300; ++round) {
    PyramidShape shape;
    shape.layers = random.between(1, 40);
    shape.window = random.between(0, 32);
    shape.tokens = shape.window + random.between(0, 3000);
    shape.capacity = shape.window + random.between(0, shape.tokens - shape.window);
    shape.beta = random.between(1, 30);
    const std::vector<double> weights = pyramid_weights(shape).value();
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    CHECK(sum == doctest::Approx(static_cast<double>(shape.layers * (shape.capacity - shape.window))));
    for (size_t layer = 1; layer < weights.size(); ++layer) REQUIRE(weights[layer] <= weights[layer - 1]);
    CHECK(weights.back() >= 0.0);
    CHECK(weights.front() <= static_cast<double>(shape.tokens - shape.window));
  }
}

TEST_CASE("pyramid: wrong shapes are named") {
  CHECK(argument_of(pyramid_weights({0, 100, 50, 8, 20}).status()) == "layers");
  CHECK(argument_of(pyramid_weights({2, 100, 50, -1, 20}).status()) == "window");
  CHECK(argument_of(pyramid_weights({2, 7, 50, 8, 20}).status()) == "tokens");
  CHECK(argument_of(pyramid_author_budgets({2, 100, 7, 8, 20}).status()) == "capacity");
  CHECK(argument_of(pyramid_author_budgets({2, 100, 50, 8, 0}).status()) == "beta");
}

}  // namespace
}  // namespace foldkv
