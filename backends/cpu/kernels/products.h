#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/vector.h"

// Matrix products in which every number has one fixed chain of operations, whatever is computed beside it.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

// Rows x vectors of c held in registers.
#if defined(__AVX512F__)
constexpr int kBlockRows = 6;
constexpr int kBlockVectors = 4;
#elif defined(__AVX2__)
constexpr int kBlockRows = 6;
constexpr int kBlockVectors = 2;
#else
constexpr int kBlockRows = 4;
constexpr int kBlockVectors = 2;
#endif
// Depth taken at once: this much of b stays in the first cache.
constexpr int64_t kBlockDepth = 128;

template <int kRows, int kVectors>
__attribute__((noinline)) void product_block(const MatrixProduct& p, int64_t row, int64_t column, int64_t first,
                                             int64_t end) {
  Float sums[kRows][kVectors];
  float* c = p.c + row * p.c_stride + column;
  const auto start = first == 0 ? p.start : MatrixProduct::Start::kKeep;
  FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
    FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) {
      Float value = {};
      if (start == MatrixProduct::Start::kRow) value = broadcast(p.row_start[row + r]);
      if (start == MatrixProduct::Start::kKeep) value = load(c + r * p.c_stride + v * kLanes);
      if (start == MatrixProduct::Start::kScaled) {
        value = load(c + r * p.c_stride + v * kLanes) * broadcast(p.row_start[row + r]);
      }
      sums[r][v] = value;
    }
  }
  const float* a = p.a + row * p.a_stride;
  const float* b = p.b + first * p.b_stride + column;
  for (int64_t k = first; k < end; ++k, b += p.b_stride) {
    Float right[kVectors];
    FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
      const Float left = broadcast(a[r * p.a_stride + k]);
      FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(left, right[v], sums[r][v]);
    }
  }
  FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
    FOLDKV_UNROLL for (int v = 0; v < kVectors; ++v) store(c + r * p.c_stride + v * kLanes, sums[r][v]);
  }
}

template <int kRows>
FOLDKV_INLINE void product_columns(const MatrixProduct& p, int64_t row, int64_t column, int vectors, int64_t first,
                                   int64_t end) {
  if (vectors >= kBlockVectors) return product_block<kRows, kBlockVectors>(p, row, column, first, end);
#if defined(__AVX512F__)
  if (vectors == 3) return product_block<kRows, 3>(p, row, column, first, end);
  if (vectors == 2) return product_block<kRows, 2>(p, row, column, first, end);
  return product_block<kRows, 1>(p, row, column, first, end);
#endif
}

FOLDKV_INLINE void product_rows(const MatrixProduct& p, int64_t row, int64_t rows, int64_t column, int vectors,
                                int64_t first, int64_t end) {
  switch (rows) {
    case 1: return product_columns<1>(p, row, column, vectors, first, end);
    case 2: return product_columns<2>(p, row, column, vectors, first, end);
    case 3: return product_columns<3>(p, row, column, vectors, first, end);
#if defined(__AVX2__)
    case 4: return product_columns<4>(p, row, column, vectors, first, end);
    case 5: return product_columns<5>(p, row, column, vectors, first, end);
#endif
    default: return product_columns<kBlockRows>(p, row, column, vectors, first, end);
  }
}

void matrix_product(const MatrixProduct& p) {
  constexpr int64_t kColumns = kBlockVectors * kLanes;
  // Depth 0 still has to write what the numbers start with.
  int64_t first = 0;
  do {
    const int64_t end = first + kBlockDepth < p.depth ? first + kBlockDepth : p.depth;
    for (int64_t column = 0; column < p.columns; column += kColumns) {
      const int64_t left = p.columns - column;
      const int vectors = static_cast<int>((left < kColumns ? left : kColumns) / kLanes);
      for (int64_t row = 0; row < p.rows; row += kBlockRows) {
        product_rows(p, row, p.rows - row < kBlockRows ? p.rows - row : kBlockRows, column, vectors, first, end);
      }
    }
    first = end;
  } while (first < p.depth);
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
