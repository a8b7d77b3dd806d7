#include "samples/lab/model.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

absl::Status check_range(absl::string_view name, int64_t value, int64_t largest) {
  if (value >= 1 && value <= largest) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(name, " is ", value, ", expected 1 to ", largest));
}

}  // namespace

absl::Status check_shape(const ModelShape& shape) {
  LAB_RETURN_IF_ERROR(check_range("layer count", shape.layer_count, 4096));
  LAB_RETURN_IF_ERROR(check_range("hidden size", shape.hidden_size, 1 << 20));
  LAB_RETURN_IF_ERROR(check_range("feed-forward size", shape.feed_forward_size, 1 << 24));
  LAB_RETURN_IF_ERROR(check_range("query heads", shape.query_heads, 4096));
  LAB_RETURN_IF_ERROR(check_range("kv heads", shape.kv_heads, shape.query_heads));
  LAB_RETURN_IF_ERROR(check_range("head size", shape.head_size, 512));
  LAB_RETURN_IF_ERROR(check_range("vocabulary size", shape.vocabulary_size, 1 << 24));
  LAB_RETURN_IF_ERROR(check_range("context length", shape.context_length, int64_t{1} << 30));
  if (shape.query_heads % shape.kv_heads != 0) {
    return absl::DataLossError(
        absl::StrCat(shape.query_heads, " query heads do not share ", shape.kv_heads, " kv heads evenly"));
  }
  if (!(shape.norm_epsilon >= 0 && shape.norm_epsilon < 1)) {
    return absl::DataLossError(absl::StrCat("norm epsilon is ", shape.norm_epsilon, ", expected 0 to 1"));
  }
  if (static_cast<int64_t>(shape.inverse_frequencies.size()) * 2 > shape.head_size) {
    return absl::DataLossError(
        absl::StrCat(shape.inverse_frequencies.size(), " rotated pairs do not fit heads of ", shape.head_size));
  }
  for (const double frequency : shape.inverse_frequencies) {
    if (!std::isfinite(frequency)) return absl::DataLossError("a rotation frequency is not finite");
  }
  return absl::OkStatus();
}

std::vector<double> standard_inverse_frequencies(double base, int64_t rotated_size) {
  std::vector<double> frequencies(static_cast<size_t>(rotated_size / 2));
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    frequencies[pair] = std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(rotated_size));
  }
  return frequencies;
}

}  // namespace foldkv_lab
