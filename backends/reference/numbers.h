#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "runtime/base/number_format.h"
#include "runtime/base/tensor_view.h"

// Rows of numbers in any format, read as and written from double precision.
namespace foldkv::backend::reference {

inline void read_numbers(NumberFormat format, const std::byte* data, int64_t count, double* numbers) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<double>(number_at(format, data, i));
}

// False when the number, rounded to the format, is not finite.
[[nodiscard]] inline bool write_number(NumberFormat format, std::byte* data, int64_t index, double number) {
  const float value = static_cast<float>(number);
  switch (format) {
    case NumberFormat::kF32: reinterpret_cast<float*>(data)[index] = value; break;
    case NumberFormat::kF16: reinterpret_cast<uint16_t*>(data)[index] = f16_from_f32(value); break;
    case NumberFormat::kBF16: reinterpret_cast<uint16_t*>(data)[index] = bf16_from_f32(value); break;
  }
  return std::isfinite(number_at(format, data, index));
}

[[nodiscard]] inline double double_from_f16(uint16_t half) { return static_cast<double>(f32_from_f16(half)); }

// Four sums that do not wait for each other; their order is fixed, so a result depends on nothing but its operands.
template <typename A, typename B>
[[nodiscard]] double dot(const A* a, const B* b, int64_t count) {
  double sums[4] = {0.0, 0.0, 0.0, 0.0};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int64_t lane = 0; lane < 4; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (; i < count; ++i) sums[i % 4] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace foldkv::backend::reference
