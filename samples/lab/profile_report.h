#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "nlohmann/json_fwd.hpp"

namespace foldkv_lab {

// Everything that the library tells of a profile: where it comes from, groups, bands, variance kept, bytes.
[[nodiscard]] absl::StatusOr<nlohmann::json> report_profile(const foldkv::Profile& profile);

// The report in words: two lines for the whole, and a table of the groups.
[[nodiscard]] std::string profile_summary(const nlohmann::json& report);
[[nodiscard]] std::string profile_table(const nlohmann::json& report);

// A report's layers: "0-3" for adjacent ones, else "0,2,5".
[[nodiscard]] std::string layer_text(const nlohmann::json& layers);

}  // namespace foldkv_lab
