#include "samples/lab/rms_norm.h"

#include <cmath>

namespace foldkv_lab {
namespace {

// One over the root mean square, in double precision: the sum of a wide row loses digits in single.
double inverse_root(const float* input, int64_t size, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < size; ++i) squares += static_cast<double>(input[i]) * static_cast<double>(input[i]);
  return 1.0 / std::sqrt(squares / static_cast<double>(size) + epsilon);
}

}  // namespace

void rms_norm(const float* input, const float* weight, int64_t size, double epsilon, float* output) {
  const float factor = static_cast<float>(inverse_root(input, size, epsilon));
  for (int64_t i = 0; i < size; ++i) output[i] = input[i] * factor * weight[i];
}

// With f = 1 / root: output = f * weight * input, and the gradient of f is -f^3 / size * input.
void rms_norm_backward(const float* input, const float* weight, int64_t size, double epsilon,
                       const float* output_gradient, float* input_gradient) {
  const double inverse = inverse_root(input, size, epsilon);
  double along = 0;  // the weighted gradient along the input
  for (int64_t i = 0; i < size; ++i) {
    along += static_cast<double>(output_gradient[i] * weight[i]) * static_cast<double>(input[i]);
  }
  const float factor = static_cast<float>(inverse);
  const float shrink = static_cast<float>(along * inverse * inverse * inverse / static_cast<double>(size));
  for (int64_t i = 0; i < size; ++i) {
    input_gradient[i] += factor * output_gradient[i] * weight[i] - shrink * input[i];
  }
}

}  // namespace foldkv_lab
