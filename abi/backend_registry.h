#pragma once

#include <cstdint>
#include <string>

#include "backends/interface/plugin.h"

namespace foldkv::abi {

// The backends of this build, the default first.
[[nodiscard]] int32_t backend_count();
[[nodiscard]] const backend::Plugin& backend_at(int32_t index);
// Unsupported error that lists the names there are.
[[nodiscard]] StatusOr<const backend::Plugin*> find_backend(const std::string& name);

}  // namespace foldkv::abi
