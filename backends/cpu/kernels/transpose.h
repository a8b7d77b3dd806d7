#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/vector.h"

// Squares of kLanes x kLanes 32-bit words, and tiles of 64 rows made of them.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

// Every 128-bit part of four registers as a 4 x 4 square.
FOLDKV_INLINE void transpose_quads(Word* rows) {
#if defined(__AVX512F__)
#define FOLDKV_MIX_WORDS(a, b, first)                                                                               \
  __builtin_shufflevector(a, b, first, first + 16, first + 1, first + 17, first + 4, first + 20, first + 5,         \
                          first + 21, first + 8, first + 24, first + 9, first + 25, first + 12, first + 28,         \
                          first + 13, first + 29)
#define FOLDKV_MIX_PAIRS(a, b, first)                                                                               \
  __builtin_shufflevector(a, b, first, first + 1, first + 16, first + 17, first + 4, first + 5, first + 20,         \
                          first + 21, first + 8, first + 9, first + 24, first + 25, first + 12, first + 13,         \
                          first + 28, first + 29)
#elif defined(__AVX2__)
#define FOLDKV_MIX_WORDS(a, b, first)                                                                               \
  __builtin_shufflevector(a, b, first, first + 8, first + 1, first + 9, first + 4, first + 12, first + 5, first + 13)
#define FOLDKV_MIX_PAIRS(a, b, first)                                                                               \
  __builtin_shufflevector(a, b, first, first + 1, first + 8, first + 9, first + 4, first + 5, first + 12, first + 13)
#else
#define FOLDKV_MIX_WORDS(a, b, first) __builtin_shufflevector(a, b, first, first + 4, first + 1, first + 5)
#define FOLDKV_MIX_PAIRS(a, b, first) __builtin_shufflevector(a, b, first, first + 1, first + 4, first + 5)
#endif
  const Word low01 = FOLDKV_MIX_WORDS(rows[0], rows[1], 0);
  const Word high01 = FOLDKV_MIX_WORDS(rows[0], rows[1], 2);
  const Word low23 = FOLDKV_MIX_WORDS(rows[2], rows[3], 0);
  const Word high23 = FOLDKV_MIX_WORDS(rows[2], rows[3], 2);
  rows[0] = FOLDKV_MIX_PAIRS(low01, low23, 0);
  rows[1] = FOLDKV_MIX_PAIRS(low01, low23, 2);
  rows[2] = FOLDKV_MIX_PAIRS(high01, high23, 0);
  rows[3] = FOLDKV_MIX_PAIRS(high01, high23, 2);
#undef FOLDKV_MIX_WORDS
#undef FOLDKV_MIX_PAIRS
}

// rows[i] lane j  <->  rows[j] lane i
FOLDKV_INLINE void transpose_square(Word (&rows)[kLanes]) {
  FOLDKV_UNROLL for (int quad = 0; quad < kLanes; quad += 4) transpose_quads(rows + quad);
#if defined(__AVX512F__)
#define FOLDKV_PARTS(a, b, p, q, r, s)                                                                                \
  __builtin_shufflevector(a, b, p * 4, p * 4 + 1, p * 4 + 2, p * 4 + 3, q * 4, q * 4 + 1, q * 4 + 2, q * 4 + 3, r * 4, \
                          r * 4 + 1, r * 4 + 2, r * 4 + 3, s * 4, s * 4 + 1, s * 4 + 2, s * 4 + 3)
  // Now rows[4 i + j] holds in part k: rows 4 i .. 4 i + 3 of column 4 k + j.
  FOLDKV_UNROLL for (int j = 0; j < 4; ++j) {
    const Word a = FOLDKV_PARTS(rows[j], rows[4 + j], 0, 2, 4, 6);
    const Word b = FOLDKV_PARTS(rows[8 + j], rows[12 + j], 0, 2, 4, 6);
    const Word c = FOLDKV_PARTS(rows[j], rows[4 + j], 1, 3, 5, 7);
    const Word d = FOLDKV_PARTS(rows[8 + j], rows[12 + j], 1, 3, 5, 7);
    rows[j] = FOLDKV_PARTS(a, b, 0, 2, 4, 6);
    rows[8 + j] = FOLDKV_PARTS(a, b, 1, 3, 5, 7);
    rows[4 + j] = FOLDKV_PARTS(c, d, 0, 2, 4, 6);
    rows[12 + j] = FOLDKV_PARTS(c, d, 1, 3, 5, 7);
  }
#undef FOLDKV_PARTS
#elif defined(__AVX2__)
  FOLDKV_UNROLL for (int j = 0; j < 4; ++j) {
    const Word a = __builtin_shufflevector(rows[j], rows[4 + j], 0, 1, 2, 3, 8, 9, 10, 11);
    const Word b = __builtin_shufflevector(rows[j], rows[4 + j], 4, 5, 6, 7, 12, 13, 14, 15);
    rows[j] = a;
    rows[4 + j] = b;
  }
#endif
}

template <NumberFormat kFormat>
FOLDKV_INLINE void transpose_rows(const std::byte* const* rows, int64_t width, float* output) {
  constexpr int64_t kBytes = kNumberBytes<kFormat>;
  for (int64_t token = 0; token < kTile; token += kLanes) {
    for (int64_t column = 0; column < width; column += kLanes) {
      const int64_t count = width - column < kLanes ? width - column : kLanes;
      Word square[kLanes];
      FOLDKV_UNROLL for (int i = 0; i < kLanes; ++i) {
        const std::byte* row = rows[token + i];
        Float numbers = {};
        if (row != nullptr) {
          const std::byte* from = row + column * kBytes;
          numbers = count == kLanes ? load_number<kFormat>(from) : load_some<kFormat>(from, count);
        }
        square[i] = (Word)numbers;
      }
      transpose_square(square);
      for (int64_t i = 0; i < count; ++i) store_words(output + (column + i) * kTile + token, square[i]);
    }
  }
}

void transpose_tile(NumberFormat format, const std::byte* const* rows, int64_t width, float* output) {
  switch (format) {
    case NumberFormat::kF32: return transpose_rows<NumberFormat::kF32>(rows, width, output);
    case NumberFormat::kF16: return transpose_rows<NumberFormat::kF16>(rows, width, output);
    case NumberFormat::kBF16: return transpose_rows<NumberFormat::kBF16>(rows, width, output);
  }
}

// input [width][64] to output [live][width]
void untranspose_tile(const float* input, int64_t width, int64_t live, float* output, int64_t output_stride) {
  for (int64_t column = 0; column < width; column += kLanes) {
    const int64_t count = width - column < kLanes ? width - column : kLanes;
    for (int64_t token = 0; token < live; token += kLanes) {
      Word square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        square[i] = i < count ? load_words(input + (column + i) * kTile + token) : Word{};
      }
      transpose_square(square);
      for (int64_t i = 0; i < kLanes && token + i < live; ++i) {
        __builtin_memcpy(output + (token + i) * output_stride + column, &square[i],
                         static_cast<size_t>(count) * sizeof(float));
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
