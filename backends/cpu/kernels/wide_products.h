#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/vector.h"

// Products in double precision.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

template <int kRows, int kColumns>
__attribute__((noinline)) void wide_dot_block(const WideRowProduct& p, int64_t row, int64_t column) {
  Double sums[kRows][kColumns] = {};
  const double* x = p.x + row * p.x_stride;
  const double* w = p.w + column * p.w_stride;
  int64_t k = 0;
  for (; k + kWideLanes <= p.depth; k += kWideLanes) {
    Double right[kColumns];
    FOLDKV_UNROLL for (int c = 0; c < kColumns; ++c) right[c] = load_wide(w + c * p.w_stride + k);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
      const Double left = load_wide(x + r * p.x_stride + k);
      FOLDKV_UNROLL for (int c = 0; c < kColumns; ++c) sums[r][c] = multiply_add_wide(left, right[c], sums[r][c]);
    }
  }
  FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
    FOLDKV_UNROLL for (int c = 0; c < kColumns; ++c) {
      double sum = sum_of_wide_lanes(sums[r][c]);
      for (int64_t i = k; i < p.depth; ++i) {
        const double product = x[r * p.x_stride + i] * w[c * p.w_stride + i];
        sum = sum + product;
      }
      p.y[(row + r) * p.y_stride + column + c] = sum;
    }
  }
}

void wide_row_product(const WideRowProduct& p) {
  for (int64_t row = 0; row < p.rows; row += 2) {
    int64_t column = 0;
    if (row + 2 <= p.rows) {
      for (; column + 4 <= p.columns; column += 4) wide_dot_block<2, 4>(p, row, column);
      for (; column < p.columns; ++column) wide_dot_block<2, 1>(p, row, column);
    } else {
      for (; column + 4 <= p.columns; column += 4) wide_dot_block<1, 4>(p, row, column);
      for (; column < p.columns; ++column) wide_dot_block<1, 1>(p, row, column);
    }
  }
}

#if defined(__AVX512F__)
constexpr int kOuterRows = 6;
constexpr int kOuterVectors = 4;
#elif defined(__AVX2__)
constexpr int kOuterRows = 3;
constexpr int kOuterVectors = 4;
#else
constexpr int kOuterRows = 1;
constexpr int kOuterVectors = 8;
#endif

template <int kRows, int kVectors>
__attribute__((noinline)) void outer_block(const OuterSum& o, int64_t row, int64_t column) {
  Double sums[kRows][kVectors];
  double* sum = o.sum + row * o.sum_stride + column;
  FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
    FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) sums[r][v] = load_wide(sum + r * o.sum_stride + v * kWideLanes);
  }
  const double* left = o.left + row;
  const double* right = o.right + column;
  for (int64_t token = 0; token < o.tokens; ++token, left += o.left_stride, right += o.right_stride) {
    Double columns[kVectors];
    FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) columns[v] = load_wide(right + v * kWideLanes);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
      const Double factor = broadcast_wide(left[r]);
      FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add_wide(factor, columns[v], sums[r][v]);
    }
  }
  FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
    FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) store_wide(sum + r * o.sum_stride + v * kWideLanes, sums[r][v]);
  }
}

template <int kVectors>
FOLDKV_INLINE void outer_rows(const OuterSum& o, int64_t column) {
  int64_t row = 0;
  for (; row + kOuterRows <= o.rows; row += kOuterRows) outer_block<kOuterRows, kVectors>(o, row, column);
  for (; row < o.rows; ++row) outer_block<1, kVectors>(o, row, column);
}

void outer_sum(const OuterSum& o) {
  constexpr int64_t kColumns = kOuterVectors * kWideLanes;
  constexpr int64_t kFewColumns = kWidthPadding;
  int64_t column = 0;
  for (; column + kColumns <= o.columns; column += kColumns) outer_rows<kOuterVectors>(o, column);
  for (; column < o.columns; column += kFewColumns) outer_rows<kFewColumns / kWideLanes>(o, column);
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
