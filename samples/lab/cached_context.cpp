#include "samples/lab/cached_context.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 30;  // positions of more are no longer exact angles

absl::Status check_side(absl::string_view name, const std::vector<FloatBuffer>& side, int64_t layers, int64_t numbers) {
  if (static_cast<int64_t>(side.size()) != layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("context.", name, " has ", side.size(), " layers, the model ", layers));
  }
  for (size_t layer = 0; layer < side.size(); ++layer) {
    const FloatBuffer& buffer = side[layer];
    if (buffer.size() != numbers) {
      return absl::InvalidArgumentError(
          absl::StrCat("context.", name, "[", layer, "] has ", buffer.size(), " numbers, expected ", numbers));
    }
    if (!std::all_of(buffer.data(), buffer.data() + numbers, [](float number) { return std::isfinite(number); })) {
      return absl::InvalidArgumentError(
          absl::StrCat("context.", name, "[", layer, "] holds a number that is not finite"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_context(const Model& model, const CachedContext& context) {
  if (context.tokens < 1 || context.tokens > kMostTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("context.tokens is ", context.tokens, ", expected 1 to ", kMostTokens));
  }
  const int64_t numbers = context.tokens * model.shape.kv_width();
  LAB_RETURN_IF_ERROR(check_side("keys", context.keys, model.shape.layer_count, numbers));
  return check_side("values", context.values, model.shape.layer_count, numbers);
}

}  // namespace foldkv_lab
