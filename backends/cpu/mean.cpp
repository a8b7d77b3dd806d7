#include <algorithm>
#include <atomic>

#include "backends/cpu/f16_of_double.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/latents.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kColumns = 128;  // of one layer, summed at once

// Sums over tokens in rising order. Returns false when a mean is beyond f16.
bool mean_of_columns(const Engine& engine, const MeanRequest& request, int64_t layer, int64_t first) {
  const StackedRows& rows = request.rows;
  const int64_t columns = std::min(kColumns, rows.layout.width - first);
  const std::byte* const* pages = rows.layers[static_cast<size_t>(layer)].pages;
  const int64_t offset = rows.layout.side_offset(rows.side) + first * bytes_of(rows.layout.format);
  double sums[kColumns] = {};
  for (int64_t token = 0; token < rows.count; ++token) {
    const int64_t slot = rows.slot(token);
    float numbers[kColumns];
    const std::byte* row = pages[slot / rows.layout.page_tokens] + offset +
                           slot % rows.layout.page_tokens * rows.layout.row_bytes();
    engine.kernels.to_f32(rows.layout.format, row, columns, numbers);
    engine.kernels.add_in_double(numbers, columns, sums);
  }
  bool in_range = true;
  for (int64_t column = 0; column < columns; ++column) {
    const uint16_t half = f16_from_f64(sums[column] / static_cast<double>(rows.count));
    request.mean[layer * rows.layout.width + first + column] = half;
    in_range = in_range && is_finite_f16(half);
  }
  return in_range;
}

}  // namespace

Status mean(const Engine& engine, const MeanRequest& request) {
  if (request.rows.count == 0) return numeric_error("the mean of no tokens");
  const int64_t blocks = divide_up(request.rows.layout.width, kColumns);
  std::atomic<bool> in_range = true;
  engine.threads.run(std::ssize(request.rows.layers) * blocks, [&](int64_t unit, int) {
    if (!mean_of_columns(engine, request, unit / blocks, unit % blocks * kColumns)) in_range = false;
  });
  if (!in_range) return numeric_error("the mean of the tokens is beyond f16");
  return absl::OkStatus();
}

}  // namespace foldkv::backend::cpu
