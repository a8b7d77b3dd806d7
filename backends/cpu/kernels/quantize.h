#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/codes.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/vector.h"

namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

// The nearest f16 of a positive double, ties to even. Rounding to f32 first, to odd, keeps what the second rounding
// has to know.
uint32_t f16_bits_of_double(double value) {
  const auto nearest = static_cast<float>(value);
  uint32_t bits;
  __builtin_memcpy(&bits, &nearest, sizeof bits);
  const auto back = static_cast<double>(nearest);
  if (back > value) --bits;
  if (back != value) bits |= 1u;
  float odd;
  __builtin_memcpy(&odd, &bits, sizeof odd);
  return to_f16(broadcast(odd))[0];
}

FOLDKV_INLINE Float load_latents(const float* from, int64_t count) {
  if (count >= kLanes) return load(from);
  return load_some<NumberFormat::kF32>(reinterpret_cast<const std::byte*>(from), count);
}

// x / scale is taken in f32 and rounded to the nearest even integer, which gives the codes of an exact division: a
// tie k + 1/2 is an f32, so rounding cannot cross it; and it cannot reach it, because x and (k + 1/2) * scale, a
// product of 8 and 11 bits, differ by at least one unit in the last place of x or not at all, which is more than half
// a unit in the last place of the quotient.
FOLDKV_INLINE void write_codes(const float* latents, int64_t count, float scale, int bits, uint8_t* codes) {
  const Float largest = broadcast(static_cast<float>((1 << (bits - 1)) - 1));
  const Float magic = broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Int bias = broadcast_int(1 << (bits - 1));
  for (int64_t i = 0; i < count; i += kLanes) {
    Float quotient = load_latents(latents + i, count - i) / broadcast(scale);
    quotient = quotient > largest ? largest : quotient;
    quotient = quotient < -largest ? -largest : quotient;
    const Int code = (Int)(quotient + magic) - (Int)magic + bias;
    const Bytes bytes = __builtin_convertvector(code, Bytes);
    const int64_t some = count - i < kLanes ? count - i : kLanes;
    __builtin_memcpy(codes + i, &bytes, static_cast<size_t>(some));
  }
}

uint32_t quantize_group(const QuantizeGroup& group) {
  constexpr int64_t kRun = 256;  // codes at a time; a multiple of eight keeps runs on bytes
  Word magnitudes = {};
  for (int64_t i = 0; i < group.count; i += kLanes) {
    magnitudes = larger(magnitudes, (Word)load_latents(group.latents + i, group.count - i) & 0x7fffffffu);
  }
  // Bits of finite magnitudes are ordered like the magnitudes, and those of infinity and NaN lie above.
  const uint32_t largest_bits = maximum_of_words(magnitudes);
  if (largest_bits >= 0x7f800000u) return kBadScale;
  float largest;
  __builtin_memcpy(&largest, &largest_bits, sizeof largest);
  const uint32_t scale_bits = f16_bits_of_double(static_cast<double>(largest) / ((1 << (group.bits - 1)) - 1));
  if (scale_bits >= 0x7c00u) return kBadScale;
  const float scale = from_f16(Half{} + static_cast<uint16_t>(scale_bits))[0];

  uint8_t codes[kRun];
  for (int64_t first = 0; first < group.count; first += kRun) {
    const int64_t some = group.count - first < kRun ? group.count - first : kRun;
    if (scale_bits == 0) {
      __builtin_memset(codes, 1 << (group.bits - 1), static_cast<size_t>(some));
    } else {
      write_codes(group.latents + first, some, scale, group.bits, codes);
    }
    pack_codes(codes, some, group.bits, group.codes + first * group.bits / 8);
  }
  return scale_bits;
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
