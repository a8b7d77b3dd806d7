#pragma once

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"

namespace foldkv {

// Takes all of bytes, or fails.
using WriteBytes = absl::FunctionRef<Status(std::span<const std::byte> bytes)>;
// Fills all of bytes, or fails.
using ReadBytes = absl::FunctionRef<Status(std::span<std::byte> bytes)>;

}  // namespace foldkv
