#pragma once

#include "runtime/cache/prepared.h"

namespace foldkv {

// Unsupported error, naming the layer, when the backend has no kernel for it under a plan of the profile.
[[nodiscard]] Status check_kernels(const backend::Backend& backend, const PreparedModel& model,
                                   const PreparedProfile& profile, size_t plan);

}  // namespace foldkv
