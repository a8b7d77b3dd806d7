#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/base/number_format.h"

// The asymmetric quantizer (KIVI, methods.md section 5): scale = (largest - smallest) / (2^bits - 1), codes count
// scales from the smallest number on. The smallest number and the scale are stored in f16 and used as stored.
namespace foldkv::backend {

struct AsymmetricRange {
  uint16_t scale = 0;     // f16
  uint16_t smallest = 0;  // f16
};

// Where a page holds it: the scale, then the smallest number.
inline constexpr int64_t kAsymmetricRangeBytes = 4;

[[nodiscard]] inline AsymmetricRange load_range(const std::byte* place) {
  AsymmetricRange range;
  std::memcpy(&range.scale, place, sizeof range.scale);
  std::memcpy(&range.smallest, place + sizeof range.scale, sizeof range.smallest);
  return range;
}

inline void store_range(const AsymmetricRange& range, std::byte* place) {
  std::memcpy(place, &range.scale, sizeof range.scale);
  std::memcpy(place + sizeof range.scale, &range.smallest, sizeof range.smallest);
}

// False: the numbers are not finite, or one of the two is beyond f16.
[[nodiscard]] inline bool asymmetric_range(const float* numbers, int64_t count, int64_t stride, int32_t bits,
                                           AsymmetricRange& range) {
  float smallest = numbers[0];
  float largest = numbers[0];
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    finite = finite && std::isfinite(numbers[i * stride]);
    smallest = std::min(smallest, numbers[i * stride]);
    largest = std::max(largest, numbers[i * stride]);
  }
  const double steps = static_cast<double>((1 << bits) - 1);
  const double width = static_cast<double>(largest) - static_cast<double>(smallest);
  range.scale = f16_from_f32(static_cast<float>(width / steps));
  range.smallest = f16_from_f32(smallest);
  return finite && std::isfinite(f32_from_f16(range.scale)) && std::isfinite(f32_from_f16(range.smallest));
}

// 0 to 2^bits - 1, rounded half to even.
[[nodiscard]] inline uint8_t asymmetric_code(float number, const AsymmetricRange& range, int32_t bits) {
  const auto scale = static_cast<double>(f32_from_f16(range.scale));
  if (scale == 0.0) return 0;
  const double steps = (static_cast<double>(number) - static_cast<double>(f32_from_f16(range.smallest))) / scale;
  return static_cast<uint8_t>(std::clamp(std::nearbyint(steps), 0.0, static_cast<double>((1 << bits) - 1)));
}

// What the middle code decodes to. Code c decodes to centre + (c - 2^(bits-1)) * scale: the product is exact in f32 and
// the sum is rounded to it, everywhere.
[[nodiscard]] inline float asymmetric_centre(const AsymmetricRange& range, int32_t bits) {
  return f32_from_f16(range.smallest) + static_cast<float>(1 << (bits - 1)) * f32_from_f16(range.scale);
}
[[nodiscard]] inline float asymmetric_value(int32_t code, const AsymmetricRange& range, int32_t bits) {
  const float distance = static_cast<float>(code - (1 << (bits - 1))) * f32_from_f16(range.scale);
  return asymmetric_centre(range, bits) + distance;
}

}  // namespace foldkv::backend
