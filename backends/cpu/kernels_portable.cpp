#define FOLDKV_KERNEL_SET portable
#include "backends/cpu/kernels/table.h"
