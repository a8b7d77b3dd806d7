#pragma once

#include <cstdint>

#include "samples/lab/model.h"
#include "samples/lab/thread_pool.h"

namespace foldkv_lab {

// output [rows, weight.rows] = input [rows, weight.columns] * weight^T (+ bias [weight.rows]; nullptr: none).
void linear(const Matrix& weight, const float* bias, const float* input, int64_t rows, float* output,
            ThreadPool& threads);

// What a gradient of the output is as one of the input:
// input_gradient [rows, weight.columns] = output_gradient [rows, weight.rows] * weight.
void linear_backward(const Matrix& weight, const float* output_gradient, int64_t rows, float* input_gradient,
                     ThreadPool& threads);

}  // namespace foldkv_lab
