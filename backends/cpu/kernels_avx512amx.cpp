#define FOLDKV_KERNEL_SET avx512amx
#include "backends/cpu/kernels/table.h"
