#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"

namespace foldkv_lab {

[[nodiscard]] absl::StatusOr<foldkv::Profile> load_profile(const std::string& path);

// Whole or not at all (write_file). Returns the bytes written.
[[nodiscard]] absl::StatusOr<int64_t> save_profile(const foldkv::Profile& profile, const std::string& path);

}  // namespace foldkv_lab
