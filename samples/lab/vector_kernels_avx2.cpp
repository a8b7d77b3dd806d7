#define LAB_KERNEL_NAMESPACE avx2
#include "samples/lab/vector_kernels_body.h"

namespace foldkv_lab::avx2 {

const VectorKernels kKernels = {"avx2", multiply_row, multiply, maximum, exponentials, scale, widen_halves};

}  // namespace foldkv_lab::avx2
