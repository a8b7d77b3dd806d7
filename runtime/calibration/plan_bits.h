#pragma once

#include <string>
#include <vector>

#include "runtime/calibration/group_weights.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// What a plan shall take.
struct PlanWish {
  std::string name;
  double bytes_per_token = 0.0;  // codes, scales and correction coefficients over all groups, at most; or
  double ratio = 0.0;            // that many times less than 16-bit keys and values of the grouped layers
  double value_weight = 1.0;     // an error in values counts as this many in keys
  SideNumbers group_weights;     // and one in a side of a group as this many more; empty: 1 each
};

// The same bases under new plans: all wishes share out bits over units of one scale group each, over all groups and both
// sides at once, by what an error in each coordinate costs (allocate_bits). Bases are cut to what the widest plan stores.
// Every side of a group keeps one unit at least. Argument errors: "plans[1].ratio", a wish that cannot be had for
// example; "plans[0].name".
[[nodiscard]] StatusOr<Profile> plan_bits(const Profile& profile, const std::vector<PlanWish>& wishes);

// The mean of e^T M e that a token's errors sum to under a plan, with the metric M that the profile was solved in (mean
// square errors without one): sums of variance * distortion.
[[nodiscard]] double expected_cost(const Profile& profile, const Plan& plan);
// The same of each side of each group.
[[nodiscard]] SideNumbers expected_costs(const Profile& profile, const Plan& plan);

}  // namespace foldkv
