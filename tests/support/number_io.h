#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/number_format.h"
#include "runtime/base/tensor_view.h"
#include "tests/support/memory_block.h"

namespace foldkv::test {

inline void put_number(NumberFormat format, std::byte* data, int64_t index, float number) {
  switch (format) {
    case NumberFormat::kF32: reinterpret_cast<float*>(data)[index] = number; break;
    case NumberFormat::kF16: reinterpret_cast<uint16_t*>(data)[index] = f16_from_f32(number); break;
    case NumberFormat::kBF16: reinterpret_cast<uint16_t*>(data)[index] = bf16_from_f32(number); break;
  }
}

[[nodiscard]] inline std::vector<uint16_t> halves(std::span<const float> numbers) {
  std::vector<uint16_t> result;
  result.reserve(numbers.size());
  for (const float number : numbers) result.push_back(f16_from_f32(number));
  return result;
}

// A tensor in memory of its own: rows of `stride` numbers, of which the first `columns` are in use.
class TensorMemory {
 public:
  TensorMemory(NumberFormat format, int64_t rows, int64_t columns, int64_t stride, std::byte fill)
      : view_{nullptr, format, rows, columns, stride},
        block_((rows > 0 ? (rows - 1) * stride + columns : 0) * bytes_of(format), fill) {
    view_.data = block_.data();
  }
  // Dense [rows][columns] numbers, rounded to the format.
  TensorMemory(NumberFormat format, int64_t rows, int64_t columns, int64_t stride, std::byte fill,
               std::span<const float> numbers)
      : TensorMemory(format, rows, columns, stride, fill) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        put_number(format, view_.row(row), column, numbers[static_cast<size_t>(row * columns + column)]);
      }
    }
  }
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory(TensorMemory&&) noexcept = default;

  [[nodiscard]] const MutableTensorView& view() const { return view_; }
  [[nodiscard]] float at(int64_t row, int64_t column) const { return number_at(view_.format, view_.row(row), column); }
  [[nodiscard]] bool canary_alive() const { return block_.canary_alive(); }
  [[nodiscard]] std::vector<double> numbers() const {
    std::vector<double> all;
    for (int64_t row = 0; row < view_.row_count; ++row) {
      for (int64_t column = 0; column < view_.column_count; ++column)
        all.push_back(static_cast<double>(at(row, column)));
    }
    return all;
  }

 private:
  MutableTensorView view_;
  MemoryBlock block_;
};

}  // namespace foldkv::test
