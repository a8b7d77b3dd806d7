#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/vector.h"

// Products of rows with rows. Block sizes do not change results: each number has its own lanes and its own sum.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

#if defined(__AVX512F__)
constexpr int kDotRows = 4;
#else
constexpr int kDotRows = 3;
#endif
constexpr int kDotColumns = 4;

template <NumberFormat kFormat, int kRows, int kColumns>
__attribute__((noinline)) void dot_block(const RowProduct& p, int64_t row, int64_t column) {
  constexpr int64_t kBytes = kNumberBytes<kFormat>;
  const float* x = p.x + row * p.x_stride;
  const std::byte* weight = p.weight + column * p.weight_stride * kBytes;
  Float sums[kRows][kColumns] = {};
  int64_t k = 0;
  for (; k + kLanes <= p.depth; k += kLanes) {
    Float left[kRows];
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) left[r] = load(x + r * p.x_stride + k);
    FOLDKV_UNROLL for (int c = 0; c < kColumns; ++c) {
      const Float right = load_number<kFormat>(weight + (c * p.weight_stride + k) * kBytes);
      FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) sums[r][c] = multiply_add(left[r], right, sums[r][c]);
    }
  }
  if (k < p.depth) {
    Float left[kRows];
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
      left[r] = load_some<NumberFormat::kF32>(reinterpret_cast<const std::byte*>(x + r * p.x_stride + k), p.depth - k);
    }
    FOLDKV_UNROLL for (int c = 0; c < kColumns; ++c) {
      const Float right = load_some<kFormat>(weight + (c * p.weight_stride + k) * kBytes, p.depth - k);
      FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) sums[r][c] = multiply_add(left[r], right, sums[r][c]);
    }
  }
  FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
    FOLDKV_UNROLL for (int c = 0; c < kColumns; ++c) {
      const float bias = p.bias == nullptr ? 0.0f : p.bias[column + c];
      p.y[(row + r) * p.y_stride + column + c] = sum_of_lanes(sums[r][c]) + bias;
    }
  }
}

template <NumberFormat kFormat, int kColumns>
FOLDKV_INLINE void dot_columns(const RowProduct& p, int64_t column) {
  int64_t row = 0;
  for (; row + kDotRows <= p.rows; row += kDotRows) dot_block<kFormat, kDotRows, kColumns>(p, row, column);
  for (; row < p.rows; ++row) dot_block<kFormat, 1, kColumns>(p, row, column);
}

template <NumberFormat kFormat>
void dot_product(const RowProduct& p) {
  int64_t column = 0;
  if (p.rows == 1) {
    for (; column + 8 <= p.columns; column += 8) dot_block<kFormat, 1, 8>(p, 0, column);
  }
  for (; column + kDotColumns <= p.columns; column += kDotColumns) dot_columns<kFormat, kDotColumns>(p, column);
  for (; column < p.columns; ++column) dot_columns<kFormat, 1>(p, column);
}

void row_product(const RowProduct& p) {
  switch (p.weight_format) {
    case NumberFormat::kF32: return dot_product<NumberFormat::kF32>(p);
    case NumberFormat::kF16: return dot_product<NumberFormat::kF16>(p);
    case NumberFormat::kBF16: return dot_product<NumberFormat::kBF16>(p);
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
