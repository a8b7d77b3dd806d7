#pragma once

#include <cstdint>

namespace foldkv_lab {

// output = input / root mean square of input * weight, all of `size` numbers.
void rms_norm(const float* input, const float* weight, int64_t size, double epsilon, float* output);

// Adds to input_gradient what a gradient of the output is as one of the input.
void rms_norm_backward(const float* input, const float* weight, int64_t size, double epsilon,
                       const float* output_gradient, float* input_gradient);

}  // namespace foldkv_lab
