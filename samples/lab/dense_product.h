#pragma once

#include <cstdint>

namespace foldkv_lab {

// c [rows, columns] = (accumulate: c +) a [rows, depth] * b [depth, columns]. A transposed operand is stored the other
// way round. Strides are the numbers between stored rows.
struct DenseProduct {
  const float* a = nullptr;
  int64_t a_stride = 0;
  bool a_transposed = false;
  const float* b = nullptr;
  int64_t b_stride = 0;
  bool b_transposed = false;
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  bool accumulate = false;
};

// Runs on the calling thread, whatever threads the product library has.
void dense_product(const DenseProduct& product);

}  // namespace foldkv_lab
