#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/vector.h"

// The number formats, one register at a time and whole rows.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

FOLDKV_INLINE Half load_halves(const void* from) {
  Half value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
FOLDKV_INLINE void store_halves(void* to, Half value) { __builtin_memcpy(to, &value, sizeof value); }

FOLDKV_INLINE Float from_f16(Half halves) {
#if defined(__AVX512F__)
  // The unmasked intrinsic makes gcc 12 warn of its own undefined operand.
  return _mm512_maskz_cvtph_ps(0xffff, (__m256i)halves);
#elif defined(__F16C__)
  return _mm256_cvtph_ps((__m128i)halves);
#else
  // Shifted into place, a half is an f32 with a bias smaller by 112; the product mends subnormal halves too.
  const Word bits = __builtin_convertvector(halves, Word);
  const Word magnitude = bits & 0x7fffu;
  const Word scaled = (Word)((Float)(magnitude << 13) * broadcast(0x1p112f));
  const Word special = magnitude >= 0x7c00u ? broadcast_word(0x7f800000u) : Word{};
  return (Float)(scaled | special | ((bits & 0x8000u) << 16));
#endif
}

FOLDKV_INLINE Half to_f16(Float value) {
#if defined(__AVX512F__)
  return (Half)_mm512_maskz_cvtps_ph(0xffff, value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__F16C__)
  return (Half)_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  const Word bits = (Word)value;
  const Word sign = (bits >> 16) & 0x8000u;
  const Word magnitude = bits & 0x7fffffffu;
  // Adding 0.5 in f32 rounds to a multiple of 2^-24, the step of subnormal halves.
  const Word subnormal = (Word)((Float)magnitude + broadcast(0.5f)) - 0x3f000000u;
  const Word normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  Word half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? broadcast_word(0x7c00u) : half;
  half = magnitude > 0x7f800000u ? broadcast_word(0x7e00u) : half;
  return __builtin_convertvector(half | sign, Half);
#endif
}

FOLDKV_INLINE Float from_bf16(Half halves) { return (Float)(__builtin_convertvector(halves, Word) << 16); }

FOLDKV_INLINE Half to_bf16(Float value) {
  const Word bits = (Word)value;
  const Word rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Word quiet = (bits >> 16) | 0x40u;
  return __builtin_convertvector((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded, Half);
}

template <NumberFormat kFormat>
FOLDKV_INLINE Float load_number(const std::byte* from) {
  if constexpr (kFormat == NumberFormat::kF32) {
    return (Float)load_words(from);
  } else if constexpr (kFormat == NumberFormat::kF16) {
    return from_f16(load_halves(from));
  } else {
    return from_bf16(load_halves(from));
  }
}

template <NumberFormat kFormat>
constexpr int64_t kNumberBytes = kFormat == NumberFormat::kF32 ? 4 : 2;

// Fewer numbers than a register holds; the other lanes are zero.
template <NumberFormat kFormat>
FOLDKV_INLINE Float load_some(const std::byte* from, int64_t count) {
  std::byte buffer[kVectorBytes] = {};
  __builtin_memcpy(buffer, from, static_cast<size_t>(count * kNumberBytes<kFormat>));
  return load_number<kFormat>(buffer);
}

FOLDKV_INLINE void store_some(float* to, Float value, int64_t count) {
  if (count >= kLanes) return store(to, value);
  float buffer[kLanes];
  store(buffer, value);
  __builtin_memcpy(to, buffer, static_cast<size_t>(count) * sizeof(float));
}

template <NumberFormat kFormat>
void to_f32_row(const std::byte* input, int64_t count, float* output) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(output + i, load_number<kFormat>(input + i * kNumberBytes<kFormat>));
  if (i == count) return;
  float buffer[kLanes];
  store(buffer, load_some<kFormat>(input + i * kNumberBytes<kFormat>, count - i));
  __builtin_memcpy(output + i, buffer, static_cast<size_t>(count - i) * sizeof(float));
}

void to_f32(NumberFormat format, const void* input, int64_t count, float* output) {
  const auto* bytes = static_cast<const std::byte*>(input);
  switch (format) {
    case NumberFormat::kF32: return to_f32_row<NumberFormat::kF32>(bytes, count, output);
    case NumberFormat::kF16: return to_f32_row<NumberFormat::kF16>(bytes, count, output);
    case NumberFormat::kBF16: return to_f32_row<NumberFormat::kBF16>(bytes, count, output);
  }
}

// Stores a register in a format and returns the bits that tell infinite and NaN results.
template <NumberFormat kFormat>
FOLDKV_INLINE Word store_number(std::byte* to, Float value) {
  if constexpr (kFormat == NumberFormat::kF32) {
    store_words(to, (Word)value);
    return (Word)value & 0x7fffffffu;
  } else {
    const Half half = kFormat == NumberFormat::kF16 ? to_f16(value) : to_bf16(value);
    store_halves(to, half);
    return __builtin_convertvector(half, Word) & 0x7fffu;
  }
}
template <NumberFormat kFormat>
constexpr uint32_t kInfinityBits = kFormat == NumberFormat::kF32   ? 0x7f800000u
                                   : kFormat == NumberFormat::kF16 ? 0x7c00u
                                                                   : 0x7f80u;

FOLDKV_INLINE Word larger(Word a, Word b) { return a > b ? a : b; }

template <NumberFormat kFormat>
bool from_f32_row(const float* input, int64_t count, std::byte* output) {
  constexpr int64_t kBytes = kNumberBytes<kFormat>;
  Word largest = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    largest = larger(largest, store_number<kFormat>(output + i * kBytes, load(input + i)));
  }
  if (i < count) {
    const auto* rest = reinterpret_cast<const std::byte*>(input + i);
    std::byte buffer[kVectorBytes];
    largest = larger(largest, store_number<kFormat>(buffer, load_some<NumberFormat::kF32>(rest, count - i)));
    __builtin_memcpy(output + i * kBytes, buffer, static_cast<size_t>((count - i) * kBytes));
  }
  return maximum_of_words(largest) < kInfinityBits<kFormat>;
}

bool from_f32(NumberFormat format, const float* input, int64_t count, void* output) {
  auto* bytes = static_cast<std::byte*>(output);
  switch (format) {
    case NumberFormat::kF32: return from_f32_row<NumberFormat::kF32>(input, count, bytes);
    case NumberFormat::kF16: return from_f32_row<NumberFormat::kF16>(input, count, bytes);
    case NumberFormat::kBF16: return from_f32_row<NumberFormat::kBF16>(input, count, bytes);
  }
  return false;
}

template <NumberFormat kFormat>
bool all_finite_row(const std::byte* input, int64_t count) {
  Word largest = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    largest = larger(largest, (Word)load_number<kFormat>(input + i * kNumberBytes<kFormat>) & 0x7fffffffu);
  }
  if (i < count) {
    const Float rest = load_some<kFormat>(input + i * kNumberBytes<kFormat>, count - i);
    largest = larger(largest, (Word)rest & 0x7fffffffu);
  }
  return maximum_of_words(largest) < 0x7f800000u;
}

bool all_finite(NumberFormat format, const void* input, int64_t count) {
  const auto* bytes = static_cast<const std::byte*>(input);
  switch (format) {
    case NumberFormat::kF32: return all_finite_row<NumberFormat::kF32>(bytes, count);
    case NumberFormat::kF16: return all_finite_row<NumberFormat::kF16>(bytes, count);
    case NumberFormat::kBF16: return all_finite_row<NumberFormat::kBF16>(bytes, count);
  }
  return false;
}

void add_in_double(const float* input, int64_t count, double* sums) {
  int64_t i = 0;
  for (; i + kWideLanes <= count; i += kWideLanes) store_wide(sums + i, load_wide(sums + i) + load_as_wide(input + i));
  for (; i < count; ++i) sums[i] += static_cast<double>(input[i]);
}

void subtract(const float* input, const float* subtrahend, int64_t count, float* output) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(output + i, load(input + i) - load(subtrahend + i));
  for (; i < count; ++i) output[i] = input[i] - subtrahend[i];
}

void to_f64(const float* input, int64_t count, double* output) {
  int64_t i = 0;
  for (; i + kWideLanes <= count; i += kWideLanes) store_wide(output + i, load_as_wide(input + i));
  for (; i < count; ++i) output[i] = static_cast<double>(input[i]);
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
