#pragma once

#include <cstdint>

namespace foldkv::backend::reference {

// x / sqrt(mean(x^2) + epsilon) * weight over each head of one token, [heads][head_size], in place.
void norm_heads(const float* weight, double epsilon, int64_t heads, int64_t head_size, double* token);

}  // namespace foldkv::backend::reference
