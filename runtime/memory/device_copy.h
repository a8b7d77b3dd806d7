#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/interface/backend.h"

namespace foldkv {

// Copies device memory to device memory that does not overlap it, by way of the stack where the device has memory of
// its own. Allocates nothing.
[[nodiscard]] Status copy_on_device(backend::Backend& backend, std::byte* to, const std::byte* from, int64_t bytes);

}  // namespace foldkv
