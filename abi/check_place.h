#pragma once

#include <cstdint>

#include "foldkv/foldkv.h"
#include "runtime/base/status.h"

namespace foldkv::abi {

[[nodiscard]] inline Status check_layer(int32_t layer, absl::string_view argument, int64_t layer_count) {
  if (layer >= 0 && layer < layer_count) return absl::OkStatus();
  return argument_error(argument, absl::StrCat("is ", layer, ", expected 0 to ", layer_count - 1));
}

[[nodiscard]] inline Status check_head(int32_t head, absl::string_view argument, int64_t head_count) {
  if (head >= 0 && head < head_count) return absl::OkStatus();
  return argument_error(argument, absl::StrCat("is ", head, ", expected 0 to ", head_count - 1));
}

[[nodiscard]] inline Status check_side(int32_t side, absl::string_view argument) {
  if (side == FOLDKV_KEYS || side == FOLDKV_VALUES) return absl::OkStatus();
  return argument_error(argument, absl::StrCat("is ", side, ", expected FOLDKV_KEYS (0) or FOLDKV_VALUES (1)"));
}

}  // namespace foldkv::abi
