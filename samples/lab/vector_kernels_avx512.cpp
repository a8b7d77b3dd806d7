#define LAB_KERNEL_NAMESPACE avx512
#include "samples/lab/vector_kernels_body.h"

namespace foldkv_lab::avx512 {

const VectorKernels kKernels = {"avx512", multiply_row, multiply, maximum, exponentials, scale, widen_halves};

}  // namespace foldkv_lab::avx512
