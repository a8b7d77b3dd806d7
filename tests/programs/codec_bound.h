#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

// How far from a number its code may lie. Scales and smallest numbers are stored in f16: 11 bits, or steps of 2^-24.
namespace foldkv::test::programs {

inline constexpr int64_t kKiviRun = 32;  // tokens that share scales of keys, and channels those of values
inline constexpr int64_t kMiniCachePage = 64;  // tokens that choose together who is retained
// Where the codec itself promises nothing: finite.
inline constexpr double kLargestNumber = std::numeric_limits<float>::max();

struct Range {
  double lowest = INFINITY;
  double highest = -INFINITY;
  void add(double number) {
    lowest = std::min(lowest, number);
    highest = std::max(highest, number);
  }
};

// Half a step of amax / (2^(bits-1) - 1); rounding the scale moves the largest code by its own error.
[[nodiscard]] inline double symmetric_bound(const float* numbers, int64_t count, int32_t bits) {
  double most = 0.0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(double{numbers[i]}));
  const double levels = (1 << (bits - 1)) - 1;
  const double scale_error = most / levels * 0x1p-11 + 0x1p-25;
  return 0.5 * most / levels + levels * scale_error + most * 1e-6;
}

// Half a step of (highest - lowest) / (2^bits - 1), and the errors of both stored numbers.
[[nodiscard]] inline double asymmetric_bound(const Range& range, int32_t bits) {
  const double levels = (1 << bits) - 1;
  const double width = range.highest - range.lowest;
  const double scale_error = width / levels * 0x1p-11 + 0x1p-25;
  const double lowest_error = std::abs(range.lowest) * 0x1p-11 + 0x1p-25;
  const double size = std::max(std::abs(range.lowest), std::abs(range.highest));
  return 0.5 * width / levels + (levels + 0.5) * scale_error + lowest_error + size * 1e-6;
}

}  // namespace foldkv::test::programs
