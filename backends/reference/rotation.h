#pragma once

#include <cstdint>

#include "backends/interface/operations.h"

namespace foldkv::backend::reference {

// Rotates every head of one token, [heads][head_size], in place.
void rotate_heads(const Rotation& rotation, int64_t position, int64_t heads, int64_t head_size, double* token);

}  // namespace foldkv::backend::reference
