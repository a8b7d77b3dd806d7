#pragma once

#include <cstdint>

#include "backends/cpu/kernels.h"
#include "backends/interface/operations.h"

namespace foldkv::backend::cpu {

// One token of the stacked rows as f32, minus `mean` unless null. output [width]
void gather_stacked_row(const Kernels& kernels, const StackedRows& rows, int64_t token, const float* mean,
                        float* output);

}  // namespace foldkv::backend::cpu
