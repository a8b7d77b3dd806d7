#include "runtime/policy/cake_allocation.h"

#include <cmath>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

Counts author(std::vector<double> preferences, int64_t total, int64_t cap) {
  return cake_author_budgets(preferences, total, cap).value();
}

TEST_CASE("CAKE's worked example") { CHECK(author({700.9, 200.2, 98.9}, 1000, 600) == Counts{600, 251, 149}); }

TEST_CASE("the authors' rounding spreads what is cut off, once") {
  CHECK(author({1, 1, 1}, 10, 100) == Counts{4, 3, 3});
  CHECK(author({3, 1}, 8, 100) == Counts{6, 2});
  // 90 of layer 0 go to two layers, which lifts layer 1 from 55 to 100, over the cap: 40 are lost and found by nobody.
  CHECK(author({15, 5.5, 0}, 205, 60) == Counts{60, 60, 45});
  CHECK(author({1, 0}, 10, 4) == Counts{4, 4});
  CHECK(author({1, 1}, 100, 4) == Counts{4, 4});
  CHECK(cake_author_budgets({}, 100, 4).value().empty());
}

TEST_CASE("entropy and variance from statistics") {
  // One head, two rows (0.5, 0.25, 0.25) and (0.25, 0.75, 0), entropies of rows added up.
  const auto term = [](double a) { return -a * std::log(a + 1e-10); };
  TokenStatisticsOf<double> statistics{1, 1, 3, 2, {0.75, 1.0, 0.25}, {0.3125, 0.625, 0.0625}, {}, {}, {}};
  statistics.entropies = {term(0.5) + term(0.25), term(0.25) + term(0.75), term(0.25)};
  CHECK(attention_entropy(statistics, {0, 2}).value() ==
        doctest::Approx(term(0.5) + term(0.25) + term(0.25) + term(0.75)));
  // Unbiased: 0.125^2 * 2 and 0.25^2 * 2.
  CHECK(temporal_variance(statistics, {0, 2}).value() == doctest::Approx(0.03125 + 0.125));
  CHECK(temporal_variance(statistics, {2, 1}).value() == doctest::Approx(0.03125));
  CHECK(temporal_variance(statistics, {0, 0}).value() == 0.0);
  statistics.rows = 1;
  CHECK(temporal_variance(statistics, {0, 3}).value() == 0.0);
  statistics.squares.clear();
  CHECK(argument_of(temporal_variance(statistics, {0, 3}).status()) == "squares");
  statistics.entropies.clear();
  CHECK(argument_of(attention_entropy(statistics, {0, 3}).status()) == "entropies");
}

TEST_CASE("temperatures are roots") {
  CHECK(cake_preference(16.0, 9.0, 2.0, 0.5).value() == doctest::Approx(4.0 * 81.0));
  CHECK(cake_preference(3.0, 5.0, 1.0, 1.0).value() == 15.0);
  CHECK(cake_preference(0.0, 5.0, 1.0, 1.0).value() == 0.0);
}

TEST_CASE("CAKE: wrong numbers are named") {
  CHECK(argument_of(cake_preference(-1.0, 1.0, 1.0, 1.0).status()) == "entropy");
  CHECK(argument_of(cake_preference(1.0, std::nan(""), 1.0, 1.0).status()) == "variance");
  CHECK(argument_of(cake_preference(1.0, 1.0, 0.0, 1.0).status()) == "entropy_temperature");
  CHECK(argument_of(cake_preference(1.0, 1.0, 1.0, HUGE_VAL).status()) == "variance_temperature");
  CHECK(argument_of(cake_author_budgets(std::vector<double>{1, -1}, 10, 5).status()) == "preferences[1]");
  CHECK(argument_of(cake_author_budgets(std::vector<double>{0, 0}, 10, 5).status()) == "preferences");
  CHECK(argument_of(cake_author_budgets(std::vector<double>{1}, -1, 5).status()) == "total");
  CHECK(argument_of(cake_author_budgets(std::vector<double>{1}, 1, -5).status()) == "cap");
}

}  // namespace
}  // namespace foldkv
