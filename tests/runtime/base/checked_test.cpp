#include "runtime/base/checked.h"

#include <cstdint>
#include <limits>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST_CASE("products") {
  CHECK(checked_multiply({}) == 1);
  CHECK(checked_multiply({3, 4, 5}) == 60);
  CHECK(checked_multiply({kMost, 1}) == kMost);
  CHECK(checked_multiply({kMost, 0}) == 0);
  CHECK(checked_multiply({int64_t{1} << 31, int64_t{1} << 31}) == int64_t{1} << 62);
}

TEST_CASE("products that do not fit, and negative factors, are nothing") {
  CHECK_FALSE(checked_multiply({kMost, 2}).has_value());
  CHECK_FALSE(checked_multiply({int64_t{1} << 32, int64_t{1} << 31}).has_value());
  CHECK_FALSE(checked_multiply({-1}).has_value());
  CHECK_FALSE(checked_multiply({-2, -3}).has_value());
  CHECK_FALSE(checked_multiply({0, -3}).has_value());
}

TEST_CASE("sums") {
  CHECK(checked_add(2, 3) == 5);
  CHECK(checked_add(-2, 1) == -1);
  CHECK(checked_add(kMost - 1, 1) == kMost);
  CHECK_FALSE(checked_add(kMost, 1).has_value());
  CHECK_FALSE(checked_add(std::numeric_limits<int64_t>::min(), -1).has_value());
}

TEST_CASE("rounding up") {
  CHECK(divide_up(0, 8) == 0);
  CHECK(divide_up(1, 8) == 1);
  CHECK(divide_up(8, 8) == 1);
  CHECK(divide_up(9, 8) == 2);
  CHECK(round_up(0, 64) == 0);
  CHECK(round_up(1, 64) == 64);
  CHECK(round_up(64, 64) == 64);
  CHECK(round_up(65, 64) == 128);
}

}  // namespace
}  // namespace foldkv
