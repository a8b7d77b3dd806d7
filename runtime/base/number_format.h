#pragma once

#include <bit>
#include <cstdint>

// The three number formats of tensors and of the exact region, and their scalar conversions (round half to even).
namespace foldkv {

enum class NumberFormat : int32_t { kF32 = 1, kF16 = 2, kBF16 = 3 };

[[nodiscard]] constexpr int64_t bytes_of(NumberFormat format) { return format == NumberFormat::kF32 ? 4 : 2; }
[[nodiscard]] constexpr const char* name_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::kF32: return "f32";
    case NumberFormat::kF16: return "f16";
    case NumberFormat::kBF16: return "bf16";
  }
  return "?";
}

[[nodiscard]] inline float f32_from_f16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  // Subnormal halves are small integers times 2^-24, exact in f32.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// Beyond the largest half the result is infinite; the caller decides whether that is an error.
[[nodiscard]] inline uint16_t f16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Adding 2^-14 * 2^10 in f32 rounds to a multiple of 2^-24, the step of subnormal halves.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

[[nodiscard]] inline float f32_from_bf16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

[[nodiscard]] inline uint16_t bf16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace foldkv
