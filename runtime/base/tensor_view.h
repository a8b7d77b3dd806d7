#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/number_format.h"

namespace foldkv {

// A checked view of numbers: strides are filled in and count elements, the last dimension is dense.
// rows() x columns() is the view with all dimensions after the first taken together; row r starts at
// row(r) and inner dimensions are dense (the C boundary refuses anything else).
struct TensorView {
  const std::byte* data = nullptr;
  NumberFormat format = NumberFormat::kF32;
  int64_t row_count = 0;
  int64_t column_count = 0;
  int64_t row_stride = 0;  // elements

  [[nodiscard]] bool present() const { return data != nullptr; }
  [[nodiscard]] const std::byte* row(int64_t index) const { return data + index * row_stride * bytes_of(format); }
  [[nodiscard]] TensorView rows(int64_t first, int64_t count) const {
    return {row(first), format, count, column_count, row_stride};
  }
  [[nodiscard]] TensorView columns(int64_t first, int64_t count) const {
    return {data + first * bytes_of(format), format, row_count, count, row_stride};
  }
};

struct MutableTensorView {
  std::byte* data = nullptr;
  NumberFormat format = NumberFormat::kF32;
  int64_t row_count = 0;
  int64_t column_count = 0;
  int64_t row_stride = 0;

  [[nodiscard]] bool present() const { return data != nullptr; }
  [[nodiscard]] std::byte* row(int64_t index) const { return data + index * row_stride * bytes_of(format); }
  [[nodiscard]] MutableTensorView rows(int64_t first, int64_t count) const {
    return {row(first), format, count, column_count, row_stride};
  }
  [[nodiscard]] MutableTensorView columns(int64_t first, int64_t count) const {
    return {data + first * bytes_of(format), format, row_count, count, row_stride};
  }
  [[nodiscard]] operator TensorView() const { return {data, format, row_count, column_count, row_stride}; }
};

// One number of a view as f32; for reference code and tests.
[[nodiscard]] inline float number_at(NumberFormat format, const std::byte* data, int64_t index) {
  if (format == NumberFormat::kF32) return reinterpret_cast<const float*>(data)[index];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(data)[index];
  return format == NumberFormat::kF16 ? f32_from_f16(bits) : f32_from_bf16(bits);
}

}  // namespace foldkv
