#include "runtime/policy/episode_allocation.h"

#include <cmath>
#include <numeric>

#include "doctest/doctest.h"
#include "runtime/policy/apportion.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

TEST_CASE("layers whose keys change most keep most") {
  const std::vector<double> similarities = {0.5, 0.9, 0.7, 0.6};
  const std::vector<double> squared = {1.0, 0.0, 0.25, 0.5625};
  const std::vector<double> weights = episode_weights(similarities, 2.0).value();
  for (size_t layer = 0; layer < 4; ++layer) CHECK(weights[layer] == doctest::Approx(squared[layer]));
  CHECK(episode_weights(similarities, 0.0).value() == std::vector<double>(4, 1.0));
  CHECK(episode_weights(std::vector<double>(3, 0.8), 1.1).value() == std::vector<double>(3, 1.0));
  CHECK(episode_weights({}, 1.1).value().empty());
}

TEST_CASE("the authors raise the least after scaling, and spend too much; apportioned they do not") {
  const std::vector<double> weights = {1.0, 0.0, 0.25, 0.75};
  // Halves of 400: 200, 0, 50, 150; a quarter of the average is 25.
  CHECK(episode_author_budgets(weights, 400, 0.25).value() == Counts{200, 25, 50, 150});
  CHECK(apportion(weights, 25, 1000, 400).value() == Counts{187, 25, 47, 141});
  CHECK(episode_author_budgets({}, 400, 0.25).value().empty());
}

TEST_CASE("episode: wrong arguments are named") {
  const std::vector<double> infinite = {0.5, HUGE_VAL};
  CHECK(argument_of(episode_weights(infinite, 1.0).status()) == "similarities[1]");
  CHECK(argument_of(episode_weights(std::vector<double>{1, 2}, -1.0).status()) == "sharpness");
  CHECK(argument_of(episode_author_budgets(infinite, 400, 0.25).status()) == "weights[1]");
  CHECK(argument_of(episode_author_budgets(std::vector<double>{1, 2}, -4, 0.25).status()) == "total");
  CHECK(argument_of(episode_author_budgets(std::vector<double>{1, 2}, 4, -0.25).status()) == "floor_share");
}

}  // namespace
}  // namespace foldkv
