#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// The bytes of the profile's file (sealed_file.h, profile.fbs). Equal profiles give equal bytes.
// The profile must have been finished (finish_profile). Unsupported error when it is too large for one file (2 GiB).
[[nodiscard]] StatusOr<std::vector<uint8_t>> write_profile(const Profile& profile);

}  // namespace foldkv
