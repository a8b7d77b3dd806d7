#include "samples/lab/linear.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "samples/lab/vector_kernels.h"

// The product library runs on OpenMP's threads. Its own would compete with those of the pool and of FoldKV, so every
// product runs on the thread that asks for it. (Declared here since a compiler's omp.h belongs to its own OpenMP.)
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace foldkv_lab {
namespace {

class OneProductThread {
 public:
  OneProductThread() : threads_before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneProductThread() { omp_set_num_threads(threads_before_); }
  OneProductThread(const OneProductThread&) = delete;
  OneProductThread& operator=(const OneProductThread&) = delete;

 private:
  int threads_before_;
};

// Outputs per task: enough work to be worth a thread, whole vectors.
int64_t outputs_per_task(const Matrix& weight, int64_t rows, int threads) {
  constexpr int64_t kUnit = 16;
  const int64_t smallest = ThreadPool::kWorthSharing / (weight.columns * rows) + 1;
  const int64_t even = (weight.rows + threads - 1) / threads;
  return (std::max(smallest, even) + kUnit - 1) / kUnit * kUnit;
}

// The product is added to what the output holds.
void add_product(const Matrix& weight, int64_t first, int64_t count, const float* input, int64_t rows, float* output) {
  if (rows == 1) {
    // One row is as fast as the weight comes from memory. The library's general product reads it about half as fast.
    vector_kernels().multiply_row(weight.row(first), input, count, weight.columns, output + first);
    return;
  }
  const OneProductThread one_thread;
  dnnl_sgemm('N', 'T', rows, count, weight.columns, 1.0f, input, weight.columns, weight.row(first), weight.columns,
             1.0f, output + first, weight.rows);
}

}  // namespace

void linear(const Matrix& weight, const float* bias, const float* input, int64_t rows, float* output,
            ThreadPool& threads) {
  const int64_t outputs = weight.rows;
  const int64_t step = outputs_per_task(weight, rows, threads.threads());
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

}  // namespace foldkv_lab
