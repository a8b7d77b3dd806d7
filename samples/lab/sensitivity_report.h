#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "nlohmann/json_fwd.hpp"

namespace foldkv_lab {

// The sensitivities that a profile holds, layer by layer: {"scale", "seed", "text", "layers": [...]}.
[[nodiscard]] absl::StatusOr<nlohmann::json> report_sensitivity(const foldkv::Profile& profile);

// What each group and side cost under a plan, what it was expected to cost, and the weights that follow. measured: keys
// and values of each group.
[[nodiscard]] absl::StatusOr<nlohmann::json> report_groups(const foldkv::Profile& profile, int32_t plan,
                                                           const std::vector<double>& measured);

// The same in words.
[[nodiscard]] std::string sensitivity_table(const nlohmann::json& report);
[[nodiscard]] std::string groups_table(const nlohmann::json& report);

}  // namespace foldkv_lab
