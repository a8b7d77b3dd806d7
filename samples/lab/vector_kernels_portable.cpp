#define LAB_KERNEL_NAMESPACE portable
#include "samples/lab/vector_kernels_body.h"

namespace foldkv_lab::portable {

const VectorKernels kKernels = {"portable", multiply_row, multiply, maximum, exponentials, scale, widen_halves};

}  // namespace foldkv_lab::portable
