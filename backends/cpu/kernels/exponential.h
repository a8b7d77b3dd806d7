#pragma once

#include "backends/cpu/kernels/vector.h"

namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

// exp(x) = 2^n exp(r), |r| <= ln(2) / 2, with the polynomial of Cephes' expf. Relative error below 2e-7, exp(0) is 1;
// results below the smallest normal number are 0.
FOLDKV_INLINE Float exponential(Float x) {
  const Float magic = broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Float shifted = multiply_add(x, broadcast(1.44269504088896341f), magic);
  const Float n = shifted - magic;
  Float r = multiply_add(n, broadcast(-0.693359375f), x);
  r = multiply_add(n, broadcast(2.12194440e-4f), r);
  Float p = broadcast(1.9875691500e-4f);
  p = multiply_add(p, r, broadcast(1.3981999507e-3f));
  p = multiply_add(p, r, broadcast(8.3334519073e-3f));
  p = multiply_add(p, r, broadcast(4.1665795894e-2f));
  p = multiply_add(p, r, broadcast(1.6666665459e-1f));
  p = multiply_add(p, r, broadcast(5.0000001201e-1f));
  p = multiply_add(p, r * r, r) + broadcast(1.0f);
  Float result = (Float)((Word)p + ((Word)shifted << 23));
  result = x < broadcast(-87.33f) ? Float{} : result;
  result = x > broadcast(88.72f) ? broadcast(__builtin_inff()) : result;
  return x == x ? result : x;
}

// Relative error below 3e-7. The polynomial (Cephes' tanhf) serves small arguments, where 1 - exp loses digits.
FOLDKV_INLINE Float hyperbolic_tangent(Float x) {
  const Float magnitude = absolute(x);
  const Float small = exponential(broadcast(-2.0f) * magnitude);
  const Float large_result = (broadcast(1.0f) - small) / (broadcast(1.0f) + small);
  const Float z = x * x;
  Float p = broadcast(-5.70498872745e-3f);
  p = multiply_add(p, z, broadcast(2.06390887954e-2f));
  p = multiply_add(p, z, broadcast(-5.37397155531e-2f));
  p = multiply_add(p, z, broadcast(1.33314422036e-1f));
  p = multiply_add(p, z, broadcast(-3.33332819422e-1f));
  const Float small_result = multiply_add(p * z, x, x);
  const Word sign = (Word)x & broadcast_word(0x80000000u);
  return magnitude < broadcast(0.625f) ? small_result : (Float)((Word)large_result | sign);
}

// Of normal numbers above 0, with the polynomial of Cephes' logf. Error below 2e-7 of the result, and of 1 about 1.
FOLDKV_INLINE Float logarithm(Float x) {
  const Word bits = (Word)x;
  Int exponent = (Int)(bits >> 23) - broadcast_int(126);
  Float m = (Float)((bits & broadcast_word(0x007fffffu)) | broadcast_word(0x3f000000u));
  const auto small = m < broadcast(0.707106781186547524f);
  exponent = small ? exponent - broadcast_int(1) : exponent;
  m = (small ? m + m : m) - broadcast(1.0f);
  const Float e = __builtin_convertvector(exponent, Float);
  const Float z = m * m;
  Float p = broadcast(7.0376836292e-2f);
  p = multiply_add(p, m, broadcast(-1.1514610310e-1f));
  p = multiply_add(p, m, broadcast(1.1676998740e-1f));
  p = multiply_add(p, m, broadcast(-1.2420140846e-1f));
  p = multiply_add(p, m, broadcast(1.4249322787e-1f));
  p = multiply_add(p, m, broadcast(-1.6668057665e-1f));
  p = multiply_add(p, m, broadcast(2.0000714765e-1f));
  p = multiply_add(p, m, broadcast(-2.4999993993e-1f));
  p = multiply_add(p, m, broadcast(3.3333331174e-1f));
  Float y = multiply_add(e, broadcast(-2.12194440e-4f), p * (m * z));
  y = multiply_add(z, broadcast(-0.5f), y);
  return multiply_add(e, broadcast(0.693359375f), m + y);
}

void exponential_array(const float* input, int64_t count, float* output) {
  for (int64_t i = 0; i < count; i += kLanes) {
    float buffer[kLanes] = {};
    const int64_t some = count - i < kLanes ? count - i : kLanes;
    for (int64_t k = 0; k < some; ++k) buffer[k] = input[i + k];
    store(buffer, exponential(load(buffer)));
    for (int64_t k = 0; k < some; ++k) output[i + k] = buffer[k];
  }
}

void hyperbolic_tangent_array(const float* input, int64_t count, float* output) {
  for (int64_t i = 0; i < count; i += kLanes) {
    float buffer[kLanes] = {};
    const int64_t some = count - i < kLanes ? count - i : kLanes;
    for (int64_t k = 0; k < some; ++k) buffer[k] = input[i + k];
    store(buffer, hyperbolic_tangent(load(buffer)));
    for (int64_t k = 0; k < some; ++k) output[i + k] = buffer[k];
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
