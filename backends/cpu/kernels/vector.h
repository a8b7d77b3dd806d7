#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// One vector register of the instruction set that the file is compiled for. Everything is internal to that file.
#define FOLDKV_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define FOLDKV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FOLDKV_UNROLL _Pragma("GCC unroll 32")
#endif

namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kVectorBytes = kLanes * 4;
constexpr int kWideLanes = kLanes / 2;

typedef float Float __attribute__((vector_size(kVectorBytes)));
typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Word __attribute__((vector_size(kVectorBytes)));
typedef double Double __attribute__((vector_size(kVectorBytes)));
typedef float HalfFloat __attribute__((vector_size(kVectorBytes / 2)));  // as many as a Double
typedef uint16_t Half __attribute__((vector_size(kVectorBytes / 2)));    // as many as a Float
typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes / 4)));

FOLDKV_INLINE Float load(const float* from) {
  Float value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
FOLDKV_INLINE void store(float* to, Float value) { __builtin_memcpy(to, &value, sizeof value); }
FOLDKV_INLINE Word load_words(const void* from) {
  Word value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
FOLDKV_INLINE void store_words(void* to, Word value) { __builtin_memcpy(to, &value, sizeof value); }
FOLDKV_INLINE Double load_wide(const double* from) {
  Double value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
FOLDKV_INLINE void store_wide(double* to, Double value) { __builtin_memcpy(to, &value, sizeof value); }
FOLDKV_INLINE Double load_as_wide(const float* from) {
  HalfFloat value;
  __builtin_memcpy(&value, from, sizeof value);
  return __builtin_convertvector(value, Double);
}

FOLDKV_INLINE Float broadcast(float value) { return value - Float{}; }
FOLDKV_INLINE Word broadcast_word(uint32_t value) { return value - Word{}; }
FOLDKV_INLINE Int broadcast_int(int32_t value) { return value - Int{}; }
FOLDKV_INLINE Double broadcast_wide(double value) { return value - Double{}; }

// a * b + c in one rounding where the machine has it. Written out, because which products a compiler fuses by itself
// may differ from place to place.
FOLDKV_INLINE Float multiply_add(Float a, Float b, Float c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
FOLDKV_INLINE Double multiply_add_wide(Double a, Double b, Double c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

FOLDKV_INLINE Float maximum(Float a, Float b) { return a > b ? a : b; }
FOLDKV_INLINE Float absolute(Float a) { return (Float)((Word)a & broadcast_word(0x7fffffffu)); }

// Lane l gets what lane l + distance holds, counted round.
#if defined(__AVX512F__)
#define FOLDKV_ROTATE_LANES(v, d)                                                                                   \
  __builtin_shufflevector(v, v, d, d + 1, d + 2, d + 3, d + 4, d + 5, d + 6, d + 7, (d + 8) % 16, (d + 9) % 16,      \
                          (d + 10) % 16, (d + 11) % 16, (d + 12) % 16, (d + 13) % 16, (d + 14) % 16, (d + 15) % 16)
#elif defined(__AVX2__)
#define FOLDKV_ROTATE_LANES(v, d) \
  __builtin_shufflevector(v, v, d, d + 1, d + 2, d + 3, (d + 4) % 8, (d + 5) % 8, (d + 6) % 8, (d + 7) % 8)
#else
#define FOLDKV_ROTATE_LANES(v, d) __builtin_shufflevector(v, v, d, d + 1, (d + 2) % 4, (d + 3) % 4)
#endif

// Lanes added pairwise: l and l + lanes / 2 first, neighbours last.
FOLDKV_INLINE float sum_of_lanes(Float value) {
#if defined(__AVX512F__)
  value += FOLDKV_ROTATE_LANES(value, 8);
#endif
#if defined(__AVX2__)
  value += FOLDKV_ROTATE_LANES(value, 4);
#endif
  value += FOLDKV_ROTATE_LANES(value, 2);
  value += FOLDKV_ROTATE_LANES(value, 1);
  return value[0];
}
FOLDKV_INLINE float maximum_of_lanes(Float value) {
#if defined(__AVX512F__)
  value = maximum(value, FOLDKV_ROTATE_LANES(value, 8));
#endif
#if defined(__AVX2__)
  value = maximum(value, FOLDKV_ROTATE_LANES(value, 4));
#endif
  value = maximum(value, FOLDKV_ROTATE_LANES(value, 2));
  value = maximum(value, FOLDKV_ROTATE_LANES(value, 1));
  return value[0];
}
FOLDKV_INLINE double sum_of_wide_lanes(Double value) {
  double lanes[kWideLanes];
  store_wide(lanes, value);
  for (int half = kWideLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}
FOLDKV_INLINE uint32_t maximum_of_words(Word value) {
  uint32_t lanes[kLanes];
  store_words(lanes, value);
  uint32_t largest = lanes[0];
  for (int lane = 1; lane < kLanes; ++lane) largest = lanes[lane] > largest ? lanes[lane] : largest;
  return largest;
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
