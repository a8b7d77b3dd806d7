#include "runtime/model/check_weights.h"

namespace foldkv {
namespace {

Status check_view(absl::string_view argument, const TensorView& view, int64_t rows, int64_t columns) {
  if (view.format != NumberFormat::kF32 && view.format != NumberFormat::kF16 && view.format != NumberFormat::kBF16) {
    return argument_error(argument, absl::StrCat(argument, ": got number format ", static_cast<int32_t>(view.format),
                                                 ", expected 1 (f32), 2 (f16) or 3 (bf16)"));
  }
  if (view.row_count != rows || view.column_count != columns) {
    return argument_error(argument, absl::StrCat(argument, ": got shape ", view.row_count, " x ", view.column_count,
                                                 ", expected ", rows, " x ", columns));
  }
  if (rows > 1 && view.row_stride < columns) {
    return argument_error(argument, absl::StrCat(argument, ": got a stride of ", view.row_stride,
                                                 " between rows, expected ", columns, " or more"));
  }
  return absl::OkStatus();
}

Status check_matrix(absl::string_view argument, const TensorView& view, int64_t rows, int64_t columns) {
  if (!view.present()) return argument_error(argument, absl::StrCat(argument, ": got none, expected a matrix"));
  return check_view(argument, view, rows, columns);
}

Status check_bias(absl::string_view argument, const TensorView& view, int64_t columns) {
  return view.present() ? check_view(argument, view, 1, columns) : absl::OkStatus();
}

}  // namespace

Status check_weights(const LayerWeights& weights, const LayerRules& layer, int64_t hidden_size) {
  if (hidden_size == 0) {
    return with_argument(state_error("the model was created with hidden_size 0, so it takes no weights"),
                         "hidden_size");
  }
  FOLDKV_RETURN_IF_ERROR(check_matrix("weights.query", weights.query, layer.query_width(), hidden_size));
  FOLDKV_RETURN_IF_ERROR(check_matrix("weights.key", weights.key, layer.key_width(), hidden_size));
  FOLDKV_RETURN_IF_ERROR(check_matrix("weights.value", weights.value, layer.key_width(), hidden_size));
  FOLDKV_RETURN_IF_ERROR(check_bias("weights.query_bias", weights.query_bias, layer.query_width()));
  FOLDKV_RETURN_IF_ERROR(check_bias("weights.key_bias", weights.key_bias, layer.key_width()));
  FOLDKV_RETURN_IF_ERROR(check_bias("weights.value_bias", weights.value_bias, layer.key_width()));
  if (weights.output.present()) {
    FOLDKV_RETURN_IF_ERROR(check_view("weights.output", weights.output, hidden_size, layer.query_width()));
  } else if (weights.output_bias.present()) {
    return argument_error("weights.output_bias", "weights.output_bias: got a bias without weights.output");
  }
  return check_bias("weights.output_bias", weights.output_bias, hidden_size);
}

}  // namespace foldkv
