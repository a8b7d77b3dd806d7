#pragma once

#include <cstdint>

namespace foldkv_lab {

// activated = gate * sigmoid(gate) * up, number by number.
void gated_unit(const float* gate, const float* up, int64_t count, float* activated);

// What a gradient of activated is as gradients of gate and up.
void gated_unit_backward(const float* gate, const float* up, int64_t count, const float* activated_gradient,
                         float* gate_gradient, float* up_gradient);

}  // namespace foldkv_lab
