#include <algorithm>
#include <atomic>

#include "backends/cpu/rows.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kRows = 16;
constexpr int64_t kColumns = 512;

bool convert_row(const Kernels& kernels, const TensorView& input, const MutableTensorView& output, int64_t row) {
  bool in_range = true;
  for (int64_t column = 0; column < input.column_count; column += kColumns) {
    const int64_t columns = std::min(kColumns, input.column_count - column);
    float numbers[kColumns];
    kernels.to_f32(input.format, input.row(row) + column * bytes_of(input.format), columns, numbers);
    std::byte* to = output.row(row) + column * bytes_of(output.format);
    in_range = kernels.from_f32(output.format, numbers, columns, to) && in_range;
  }
  return in_range;
}

}  // namespace

Status convert(const Engine& engine, const TensorView& input, const MutableTensorView& output) {
  std::atomic<bool> in_range = true;
  engine.threads.run(divide_up(input.row_count, kRows), [&](int64_t unit, int) {
    const int64_t end = std::min((unit + 1) * kRows, input.row_count);
    for (int64_t row = unit * kRows; row < end; ++row) {
      if (!convert_row(engine.kernels, input, output, row)) in_range = false;
    }
  });
  if (in_range) return absl::OkStatus();
  return numeric_error(absl::StrCat("a number is not finite in ", name_of(output.format)));
}

}  // namespace foldkv::backend::cpu
