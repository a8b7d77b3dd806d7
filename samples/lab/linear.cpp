#include "samples/lab/linear.h"

#include <algorithm>

#include "samples/lab/dense_product.h"
#include "samples/lab/vector_kernels.h"

namespace foldkv_lab {
namespace {

// Columns of a product of `rows` rows per task: enough work to be worth a thread, whole vectors.
int64_t columns_per_task(int64_t columns, int64_t rows, int64_t depth, int threads) {
  constexpr int64_t kUnit = 16;
  const int64_t smallest = ThreadPool::kWorthSharing / (depth * rows) + 1;
  const int64_t even = (columns + threads - 1) / threads;
  return (std::max(smallest, even) + kUnit - 1) / kUnit * kUnit;
}

// The product is added to what the output holds.
void add_product(const Matrix& weight, int64_t first, int64_t count, const float* input, int64_t rows, float* output) {
  if (rows == 1) {
    // One row is as fast as the weight comes from memory. The library's general product reads it about half as fast.
    vector_kernels().multiply_row(weight.row(first), input, count, weight.columns, output + first);
    return;
  }
  dense_product({.a = input,
                 .a_stride = weight.columns,
                 .b = weight.row(first),
                 .b_stride = weight.columns,
                 .b_transposed = true,
                 .c = output + first,
                 .c_stride = weight.rows,
                 .rows = rows,
                 .depth = weight.columns,
                 .columns = count,
                 .accumulate = true});
}

}  // namespace

void linear(const Matrix& weight, const float* bias, const float* input, int64_t rows, float* output,
            ThreadPool& threads) {
  const int64_t outputs = weight.rows;
  const int64_t step = columns_per_task(outputs, rows, weight.columns, threads.threads());
  threads.parallel_for((outputs + step - 1) / step, rows * outputs * weight.columns, [&](int64_t task) {
    const int64_t first = task * step;
    const int64_t count = std::min(step, outputs - first);
    for (int64_t row = 0; row < rows; ++row) {
      float* start = output + row * outputs + first;
      if (bias == nullptr) {
        std::fill_n(start, count, 0.0f);
      } else {
        std::copy_n(bias + first, count, start);
      }
    }
    add_product(weight, first, count, input, rows, output);
  });
}

void linear_backward(const Matrix& weight, const float* output_gradient, int64_t rows, float* input_gradient,
                     ThreadPool& threads) {
  const int64_t inputs = weight.columns;
  const int64_t step = columns_per_task(inputs, rows, weight.rows, threads.threads());
  threads.parallel_for((inputs + step - 1) / step, rows * inputs * weight.rows, [&](int64_t task) {
    const int64_t first = task * step;
    dense_product({.a = output_gradient,
                   .a_stride = weight.rows,
                   .b = weight.row(0) + first,
                   .b_stride = inputs,
                   .c = input_gradient + first,
                   .c_stride = inputs,
                   .rows = rows,
                   .depth = weight.rows,
                   .columns = std::min(step, inputs - first)});
  });
}

}  // namespace foldkv_lab
