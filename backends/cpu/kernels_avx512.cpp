#define FOLDKV_KERNEL_SET avx512
#include "backends/cpu/kernels/table.h"
