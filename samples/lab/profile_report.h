#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "nlohmann/json_fwd.hpp"

namespace foldkv_lab {

// Everything that the library tells of a profile: where it comes from, groups, bands, variance kept, bytes. Bands and
// bytes are those of the plan of that name; empty: the first. An error when there is no such plan.
[[nodiscard]] absl::StatusOr<nlohmann::json> report_profile(const foldkv::Profile& profile,
                                                            const std::string& plan = "");

// The report in words: a few lines for the whole, the plans when there is something to say of them, and a table of the
// groups.
[[nodiscard]] std::string profile_summary(const nlohmann::json& report);
[[nodiscard]] std::string plan_table(const nlohmann::json& report);
[[nodiscard]] std::string profile_table(const nlohmann::json& report);

// A report's layers: "0-3" for adjacent ones, else "0,2,5".
[[nodiscard]] std::string layer_text(const nlohmann::json& layers);

}  // namespace foldkv_lab
