#pragma once

#include "runtime/base/status.h"

namespace foldkv {

// What is wrong in the content of a file or of what becomes one.
template <typename Got, typename Expected>
[[nodiscard]] Status content_error(absl::string_view field, const Got& got, const Expected& expected) {
  return argument_error(field, absl::StrCat(field, ": got ", got, ", expected ", expected));
}

}  // namespace foldkv
