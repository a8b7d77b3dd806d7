#define FOLDKV_KERNEL_SET avx512vnni
#include "backends/cpu/kernels/table.h"
