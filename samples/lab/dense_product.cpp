#include "samples/lab/dense_product.h"

#include <oneapi/dnnl/dnnl.h>

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

}  // namespace

void dense_product(const DenseProduct& product) {
  const OneProductThread one_thread;
  dnnl_sgemm(product.a_transposed ? 'T' : 'N', product.b_transposed ? 'T' : 'N', product.rows, product.columns,
             product.depth, 1.0f, product.a, product.a_stride, product.b, product.b_stride,
             product.accumulate ? 1.0f : 0.0f, product.c, product.c_stride);
}

}  // namespace foldkv_lab
