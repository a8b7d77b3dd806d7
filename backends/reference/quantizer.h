#pragma once

#include <cstdint>

#include "runtime/base/status.h"

// The quantizer of one scale group (architecture.md decision 7).
namespace foldkv::backend::reference {

// The largest code; codes run from -largest_code to largest_code.
[[nodiscard]] constexpr int32_t largest_code(int32_t bits) { return (1 << (bits - 1)) - 1; }

// Writes count codes and returns the f16 scale. Numeric error for a number that is not finite or a scale beyond f16.
[[nodiscard]] StatusOr<uint16_t> quantize_group(const float* numbers, int64_t count, int32_t bits, int32_t* codes);

// Exact in f32, since a code has 7 bits and a scale 11.
[[nodiscard]] double dequantize(int32_t code, uint16_t scale);

}  // namespace foldkv::backend::reference
