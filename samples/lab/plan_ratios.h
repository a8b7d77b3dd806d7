#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"

namespace foldkv_lab {

// "31x" and so on.
[[nodiscard]] std::vector<std::string> plan_names(const std::vector<double>& ratios);

// The profile under bit plans that take so many times less than 16 bit.
// group_weights: keys and values of each group, or empty.
[[nodiscard]] absl::StatusOr<foldkv::Profile> plan_ratios(const foldkv::Profile& profile,
                                                          const std::vector<double>& ratios,
                                                          const std::vector<double>& group_weights = {});

}  // namespace foldkv_lab
