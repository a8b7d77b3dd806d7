#include "runtime/calibration/observed_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>

namespace foldkv {
namespace {

Status check_shape(const std::string& argument, const TensorView& view, int64_t tokens, int64_t width) {
  if (!view.present()) return argument_error(argument, absl::StrCat(argument, ": got none, expected a tensor"));
  if (tokens < 1)
    return argument_error(argument, absl::StrCat(argument, ": got ", tokens, " tokens, expected 1 or more"));
  if (view.row_count != tokens || view.column_count != width) {
    return argument_error(argument, absl::StrCat(argument, ": got shape ", view.row_count, " x ", view.column_count,
                                                 ", expected ", tokens, " tokens x ", width));
  }
  return absl::OkStatus();
}

Status check_finite(const std::string& argument, const TensorView& view) {
  for (int64_t token = 0; token < view.row_count; ++token) {
    const std::byte* const row = view.row(token);
    for (int64_t index = 0; index < view.column_count; ++index) {
      const float number = number_at(view.format, row, index);
      if (std::isfinite(number)) continue;
      return with_argument(numeric_error(absl::StrCat(argument, ": got ", number, " at token ", token, ", number ",
                                                      index, ", expected finite numbers")),
                           argument);
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status check_observed(absl::string_view argument, std::span<const TensorView> layers, const Model& model,
                      int64_t tokens) {
  if (std::ssize(layers) != model.layer_count()) {
    return argument_error(argument,
                          absl::StrCat(argument, ": got ", layers.size(), " layers, expected ", model.layer_count()));
  }
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const std::string name = absl::StrCat(argument, "[", layer, "]");
    const int64_t width = model.layer(static_cast<int64_t>(layer)).key_width();
    FOLDKV_RETURN_IF_ERROR(check_shape(name, layers[layer], tokens, width));
    FOLDKV_RETURN_IF_ERROR(check_finite(name, layers[layer]));
  }
  return absl::OkStatus();
}

void stack_rows(std::span<const TensorView> layers, const LayerGroup& group, int64_t first, int64_t count,
                float* rows) {
  for (int64_t token = first; token < first + count; ++token) {
    for (int32_t layer : group) {
      const TensorView& view = layers[static_cast<size_t>(layer)];
      const std::byte* const row = view.row(token);
      for (int64_t index = 0; index < view.column_count; ++index) *rows++ = number_at(view.format, row, index);
    }
  }
}

}  // namespace foldkv
