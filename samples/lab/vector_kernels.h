#pragma once

#include <cstdint>

namespace foldkv_lab {

// c [rows, columns] = (accumulate: c +) a [rows, depth] * b [depth, columns]. columns is a multiple of 16.
struct SmallProduct {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
  int64_t rows;
  int64_t depth;
  int64_t columns;
  bool accumulate;
};

// The loops that attention and single tokens spend their time in, for one instruction set. Counts are multiples of 16
// where nothing else is said.
struct VectorKernels {
  const char* instruction_set;
  // output [rows] += weight [rows, columns] * input [columns], any numbers of rows and columns.
  void (*multiply_row)(const float* weight, const float* input, int64_t rows, int64_t columns, float* output);
  void (*multiply)(const SmallProduct& product);
  float (*maximum)(const float* numbers, int64_t count);
  // numbers[i] = exp(numbers[i] - shift), 0 below exp(-87); returns their sum.
  float (*exponentials)(float* numbers, int64_t count, float shift);
  void (*scale)(float* numbers, int64_t count, float factor);
  void (*widen_halves)(const uint16_t* halves, float* numbers, int64_t count);
};

// The best set of this machine.
[[nodiscard]] const VectorKernels& vector_kernels();

// nullptr when this machine does not have the set ("portable", "avx2", "avx512").
[[nodiscard]] const VectorKernels* find_vector_kernels(const char* instruction_set);

}  // namespace foldkv_lab
