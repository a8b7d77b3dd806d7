#define FOLDKV_KERNEL_SET avx2
#include "backends/cpu/kernels/table.h"
