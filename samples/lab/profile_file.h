#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"

namespace foldkv_lab {

[[nodiscard]] absl::StatusOr<foldkv::Profile> load_profile(const std::string& path);

// Writes a file beside `path` first and then renames it, so that a profile is there whole or not at all. Returns the
// bytes written.
[[nodiscard]] absl::StatusOr<int64_t> save_profile(const foldkv::Profile& profile, const std::string& path);

}  // namespace foldkv_lab
