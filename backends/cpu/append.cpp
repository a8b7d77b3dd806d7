#include <algorithm>
#include <atomic>

#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kRows = 8;

struct RowCopy {
  const TensorView& input;
  int64_t row;
  int64_t head_size;
  const float* norm;
  double norm_epsilon;
  std::byte* output;
};

// Head by head, so that a head fits a small array. Returns whether all stored numbers are finite.
bool store_row(const Kernels& kernels, const ExactLayout& layout, const RowCopy& copy) {
  bool finite = true;
  for (int64_t first = 0; first < layout.width; first += copy.head_size) {
    float head[kLargestHead];
    kernels.to_f32(copy.input.format, copy.input.row(copy.row) + first * bytes_of(copy.input.format), copy.head_size,
                   head);
    if (copy.norm != nullptr) kernels.norm_head(copy.norm, copy.norm_epsilon, copy.head_size, head);
    std::byte* to = copy.output + first * bytes_of(layout.format);
    finite = kernels.from_f32(layout.format, head, copy.head_size, to) && finite;
  }
  return finite;
}

Status not_finite(const ExactLayout& layout, absl::string_view argument) {
  return with_argument(
      numeric_error(absl::StrCat("a ", argument, " holds a number that is not finite in ", name_of(layout.format))),
      argument);
}

}  // namespace

Status append(const Engine& engine, const AppendRequest& request) {
  const ExactLayout& layout = request.layout;
  std::atomic<bool> finite_keys = true;
  std::atomic<bool> finite_values = true;
  engine.threads.run(divide_up(request.keys.row_count, kRows), [&](int64_t unit, int) {
    const int64_t end = std::min((unit + 1) * kRows, request.keys.row_count);
    for (int64_t row = unit * kRows; row < end; ++row) {
      const int64_t slot = request.first_slot + row;
      std::byte* page = request.region.pages[slot / layout.page_tokens];
      std::byte* place = page + slot % layout.page_tokens * layout.row_bytes();
      const bool keys = store_row(engine.kernels, layout,
                                  {request.keys, row, request.head_size, request.key_norm, request.norm_epsilon,
                                   place + layout.side_offset(Side::kKeys)});
      const bool values = store_row(engine.kernels, layout,
                                    {request.values, row, request.head_size, nullptr, 0.0,
                                     place + layout.side_offset(Side::kValues)});
      if (!keys) finite_keys = false;
      if (!values) finite_values = false;
    }
  });
  if (!finite_keys) return not_finite(layout, "key");
  if (!finite_values) return not_finite(layout, "value");
  return absl::OkStatus();
}

}  // namespace foldkv::backend::cpu
