#pragma once

#include <array>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// A number for the keys and one for the values of each layer group.
using SideNumbers = std::vector<std::array<double, 2>>;

// What errors cost against what calibration expected: measured / expected, scaled to a mean of 1 over groups and sides.
//   measured  divergence when the side of the group alone is replaced by what it is rebuilt as under a plan
//   expected  what the plan should cost there (expected_costs)
// Both finite and above 0: argument errors name the number, "measured[2][1]" for example.
[[nodiscard]] StatusOr<SideNumbers> group_weights(const SideNumbers& measured, const SideNumbers& expected);

}  // namespace foldkv
