#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/base/number_format.h"

namespace foldkv::backend::cpu {

// The nearest f16, ties to even. Rounding to f32 first, to odd, keeps what the second rounding has to know.
[[nodiscard]] inline uint16_t f16_from_f64(double value) {
  const double magnitude = std::abs(value);
  const auto nearest = static_cast<float>(magnitude);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (static_cast<double>(nearest) > magnitude) --bits;
  if (static_cast<double>(nearest) != magnitude) bits |= 1u;
  const uint16_t half = f16_from_f32(std::bit_cast<float>(bits));
  return static_cast<uint16_t>(half | (std::signbit(value) ? 0x8000u : 0u));
}

[[nodiscard]] inline bool is_finite_f16(uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }

}  // namespace foldkv::backend::cpu
