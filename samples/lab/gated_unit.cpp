#include "samples/lab/gated_unit.h"

#include <cmath>

namespace foldkv_lab {

// x / (1 + exp(-x)): large magnitudes neither overflow nor lose the sign.
void gated_unit(const float* gate, const float* up, int64_t count, float* activated) {
  for (int64_t i = 0; i < count; ++i) activated[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

// With s = sigmoid(x), the derivative of x * s is s + x * s * (1 - s).
void gated_unit_backward(const float* gate, const float* up, int64_t count, const float* activated_gradient,
                         float* gate_gradient, float* up_gradient) {
  for (int64_t i = 0; i < count; ++i) {
    const float sigmoid = 1.0f / (1.0f + std::exp(-gate[i]));
    const float unit = gate[i] * sigmoid;
    up_gradient[i] = activated_gradient[i] * unit;
    gate_gradient[i] = activated_gradient[i] * up[i] * (sigmoid + unit * (1.0f - sigmoid));
  }
}

}  // namespace foldkv_lab
