#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace foldkv {

// Argument error that names `argument` unless low <= got <= high.
[[nodiscard]] inline Status check_range(absl::string_view argument, int64_t got, int64_t low, int64_t high) {
  if (got >= low && got <= high) return absl::OkStatus();
  return argument_error(argument, absl::StrCat(argument, ": got ", got, ", expected ", low, " to ", high));
}

}  // namespace foldkv
