#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/status.h"

namespace foldkv::backend::reference {

// Operations without a workspace hold one head on the stack.
inline constexpr int64_t kLargestHeadSize = 2048;
using HeadBuffer = std::array<double, kLargestHeadSize>;

[[nodiscard]] inline Status check_head_size(int64_t head_size) {
  if (head_size >= 1 && head_size <= kLargestHeadSize) return absl::OkStatus();
  return unsupported_error(
      absl::StrCat("head size is ", head_size, ", the reference backend takes 1 to ", kLargestHeadSize));
}

}  // namespace foldkv::backend::reference
