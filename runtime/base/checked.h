#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

// Size arithmetic for numbers that come from outside: nullopt instead of a wrapped result.
namespace foldkv {

[[nodiscard]] inline std::optional<int64_t> checked_multiply(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

[[nodiscard]] inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] constexpr int64_t divide_up(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }
[[nodiscard]] constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return divide_up(value, multiple) * multiple;
}

}  // namespace foldkv
