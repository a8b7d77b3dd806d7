#pragma once

#include <cstdint>

#include "samples/lab/model.h"
#include "samples/lab/thread_pool.h"

namespace foldkv_lab {

// output [rows, weight.rows] = input [rows, weight.columns] * weight^T (+ bias [weight.rows]; nullptr: none).
void linear(const Matrix& weight, const float* bias, const float* input, int64_t rows, float* output,
            ThreadPool& threads);

}  // namespace foldkv_lab
