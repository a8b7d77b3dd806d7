#include "runtime/policy/two_stage_selection.h"

#include <cmath>
#include <limits>

#include "doctest/doctest.h"
#include "runtime/policy/selection.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Indices = std::vector<int32_t>;

StatusOr<Indices> select_in_two_stages(std::span<const double> base, std::span<const double> weighted,
                                       std::span<const uint8_t> always, int64_t count, int64_t first) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> raised, raise_first_stage(base, weighted, always, first));
  return select_tokens(raised, always, count);
}

TEST_CASE("the first stage by the base score, the rest by the weighted one") {
  const std::vector<double> base = {9, 8, 7, 1, 2, 3};
  const std::vector<double> weighted = {1, 2, 3, 9, 8, 7};
  CHECK(select_in_two_stages(base, weighted, {}, 4, 2).value() == Indices{0, 1, 3, 4});
  CHECK(select_in_two_stages(base, weighted, {}, 4, 0).value() == Indices{2, 3, 4, 5});
  CHECK(select_in_two_stages(base, weighted, {}, 4, 4).value() == Indices{0, 1, 2, 5});
  // More than there are: all are of the first stage.
  CHECK(select_in_two_stages(base, weighted, {}, 2, 100).value() == Indices{0, 1});
  const std::vector<uint8_t> always = {1, 0, 0, 0, 0, 1};
  CHECK(select_in_two_stages(base, weighted, always, 4, 1).value() == Indices{0, 1, 3, 5});
  CHECK(select_in_two_stages(base, weighted, always, 1, 1).value() == Indices{0, 5});
}

TEST_CASE("the same as two selections, one after the other") {
  test::Random random(8);
  for (int round = 0; round < 500; ++round) {
    const auto tokens = static_cast<size_t>(random.between(1, 30));
    std::vector<double> base(tokens), weighted(tokens);
    std::vector<uint8_t> always(tokens);
    for (size_t t = 0; t < tokens; ++t) {
      base[t] = static_cast<double>(random.between(0, 5));
      weighted[t] = static_cast<double>(random.between(0, 5));
      always[t] = random.chance(0.2) ? 1 : 0;
    }
    const int64_t kept_always = static_cast<int64_t>(tokens) - count_competing(std::ssize(base), always);
    const int64_t count = random.between(kept_always, static_cast<int64_t>(tokens));
    const int64_t first = random.between(0, count - kept_always);
    std::vector<uint8_t> after(tokens);
    const Indices stage = select_tokens(base, always, kept_always + first).value();
    for (const int32_t t : stage) after[static_cast<size_t>(t)] = 1;
    CHECK(select_in_two_stages(base, weighted, always, count, first).value() ==
          select_tokens(weighted, after, count).value());
  }
}

TEST_CASE("tokens below a mass") {
  const std::vector<double> base = {0.125, 0.5, 0.125, 0.25};
  CHECK(count_below_mass(base, {}, 0.9).value() == 3);   // 0.5, 0.75, 0.875
  CHECK(count_below_mass(base, {}, 0.75).value() == 1);  // the second reaches it
  CHECK(count_below_mass(base, {}, 1.0).value() == 3);
  CHECK(count_below_mass(base, {}, 0.4).value() == 0);
  CHECK(count_below_mass(base, {}, 0.0).value() == 0);
  const std::vector<uint8_t> always = {0, 1, 0, 0};
  CHECK(count_below_mass(base, always, 0.6).value() == 1);  // of 0.5 that compete
  CHECK(count_below_mass(std::vector<double>(4), {}, 0.9).value() == 0);
  CHECK(count_below_mass({}, {}, 0.9).value() == 0);
}

TEST_CASE("wrong scores and counts are named") {
  const std::vector<double> good(3);
  const std::vector<double> not_numbers = {0, std::nan(""), 0};
  CHECK(select_in_two_stages(not_numbers, good, {}, 2, 1).status().code() == numeric_error("").code());
  CHECK(select_in_two_stages(good, not_numbers, {}, 2, 1).status().code() == numeric_error("").code());
  CHECK(argument_of(select_in_two_stages(good, std::vector<double>(2), {}, 2, 1).status()) == "weighted");
  CHECK(argument_of(select_in_two_stages(good, good, {}, 2, -1).status()) == "first");
  CHECK(argument_of(select_in_two_stages(good, good, std::vector<uint8_t>(2), 2, 1).status()) == "always");
  CHECK(argument_of(count_below_mass(good, {}, 1.5).status()) == "mass");
  CHECK(argument_of(count_below_mass(std::vector<double>{0, -1}, {}, 0.5).status()) == "base[1]");
  CHECK(count_below_mass(not_numbers, {}, 0.5).status().code() == numeric_error("").code());
}

}  // namespace
}  // namespace foldkv
