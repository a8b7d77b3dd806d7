#include "runtime/calibration/plan_bits.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/calibration/bit_allocation.h"
#include "runtime/calibration/cut_columns.h"
#include "runtime/calibration/unit_rates.h"
#include "runtime/profile/bands.h"

namespace foldkv {
namespace {

constexpr int64_t kHalfBytes = 2;

// A scale group's worth of coordinates of one side.
struct Unit {
  size_t group = 0;
  backend::Side side = backend::Side::kKeys;
  int64_t first = 0;
  int64_t count = 0;
};

const ProfileSide& side_of(const ProfileGroup& group, backend::Side side) {
  return side == backend::Side::kKeys ? group.keys : group.values;
}

std::vector<Unit> units_of(const Profile& profile) {
  std::vector<Unit> units;
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    const ProfileGroup& group = profile.groups[index];
    for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
      const int64_t width = side_of(group, side).latent_width;
      for (int64_t first = 0; first < width; first += group.scale_group) {
        units.push_back({index, side, first, std::min<int64_t>(group.scale_group, width - first)});
      }
    }
  }
  return units;
}

// What an error in a side of a group counts for under a wish.
double weight_of(const PlanWish& wish, size_t group, backend::Side side) {
  const double weight = side == backend::Side::kValues ? wish.value_weight : 1.0;
  return wish.group_weights.empty() ? weight : weight * wish.group_weights[group][static_cast<size_t>(side)];
}

Status check_weights(const Profile& profile, const std::string& field, const PlanWish& wish) {
  if (!(wish.value_weight > 0.0) || std::isinf(wish.value_weight)) {
    return argument_error(field + ".value_weight", absl::StrCat("got ", wish.value_weight, ", expected above 0"));
  }
  if (wish.group_weights.empty()) return absl::OkStatus();
  if (wish.group_weights.size() != profile.groups.size()) {
    return argument_error(field + ".group_weights", absl::StrCat("got those of ", wish.group_weights.size(),
                                                                 " groups, expected ", profile.groups.size()));
  }
  for (size_t group = 0; group < wish.group_weights.size(); ++group) {
    for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
      const double weight = wish.group_weights[group][static_cast<size_t>(side)];
      if (weight > 0.0 && std::isfinite(weight_of(wish, group, side))) continue;
      return argument_error(absl::StrCat(field, ".group_weights[", group, "][", static_cast<int>(side), "]"),
                            absl::StrCat("got ", weight, ", expected above 0"));
    }
  }
  return absl::OkStatus();
}

AllocationUnit allocation_unit(const Profile& profile, const Unit& unit, const PlanWish& wish) {
  const std::vector<double>& variances = side_of(profile.groups[unit.group], unit.side).variances;
  AllocationUnit result;
  for (int64_t i = unit.first; i < unit.first + unit.count; ++i) result.cost += variances[static_cast<size_t>(i)];
  result.cost *= weight_of(wish, unit.group, unit.side);
  for (const UnitRate& rate : unit_rates()) {
    result.choices.push_back({static_cast<double>(8 * rate.bytes(unit.count)), rate.distortion});
  }
  result.after_previous = unit.first > 0;
  result.stored = unit.first == 0;
  return result;
}

double full_bytes(const Profile& profile) { return static_cast<double>(full_bytes_per_token(profile)); }

int64_t correction_bytes(const Profile& profile) {
  int64_t bytes = 0;
  for (const ProfileGroup& group : profile.groups) bytes += kHalfBytes * group.correction.rank;
  return bytes;
}

// Codes and scales may take so many bytes.
StatusOr<double> code_bytes(const Profile& profile, const std::string& field, const PlanWish& wish) {
  const bool by_bytes = wish.bytes_per_token != 0.0;
  if (by_bytes == (wish.ratio != 0.0)) {
    return argument_error(field, absl::StrCat("got bytes_per_token ", wish.bytes_per_token, " and ratio ",
                                              wish.ratio, ", expected one of them"));
  }
  const std::string name = absl::StrCat(field, by_bytes ? ".bytes_per_token" : ".ratio");
  const double wanted = by_bytes ? wish.bytes_per_token : full_bytes(profile) / wish.ratio;
  const double given = by_bytes ? wish.bytes_per_token : wish.ratio;
  if (!(given >= 1.0) || std::isinf(given)) {
    return argument_error(name, absl::StrCat("got ", given, ", expected 1 or more"));
  }
  return wanted - static_cast<double>(correction_bytes(profile));
}

// Units of one rate after each other are one band.
void append(std::vector<Band>& bands, int64_t width, const UnitRate& rate) {
  const Band added{static_cast<int32_t>(width), rate.bits, rate.code, rate.step};
  if (!bands.empty() && bands.back() == Band{bands.back().width, rate.bits, rate.code, rate.step}) {
    bands.back().width += added.width;
  } else {
    bands.push_back(added);
  }
}

StatusOr<Plan> plan_of(const Profile& profile, const std::string& field, const PlanWish& wish) {
  FOLDKV_RETURN_IF_ERROR(check_weights(profile, field, wish));
  FOLDKV_ASSIGN_OR_RETURN(const double bytes, code_bytes(profile, field, wish));
  const std::vector<Unit> units = units_of(profile);
  std::vector<AllocationUnit> problem;
  double least = 0.0;
  for (const Unit& unit : units) {
    problem.push_back(allocation_unit(profile, unit, wish));
    if (problem.back().stored) least += problem.back().choices.front().bits;
  }
  if (8.0 * bytes < least) {
    const double smallest = least / 8.0 + static_cast<double>(correction_bytes(profile));
    return argument_error(field, absl::StrCat(field, ": got ", bytes, " bytes for codes and scales, expected ",
                                              smallest, " or more, a ratio of ", full_bytes(profile) / smallest,
                                              " at most"));
  }
  const std::vector<int32_t> choices = allocate_bits(problem, 8.0 * bytes);
  Plan plan;
  plan.name = wish.name;
  plan.groups.resize(profile.groups.size());
  for (size_t index = 0; index < units.size(); ++index) {
    if (choices[index] < 0) continue;
    GroupPlan& group = plan.groups[units[index].group];
    append(units[index].side == backend::Side::kKeys ? group.keys : group.values, units[index].count,
           unit_rates()[static_cast<size_t>(choices[index])]);
  }
  return plan;
}

void cut_side(ProfileSide& side, int64_t width) {
  cut_columns(side.basis, side.latent_width, width);
  cut_columns(side.projection, side.latent_width, width);
  side.latent_width = width;
}

void cut_bases(Profile& profile) {
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    int64_t keys = 0;
    int64_t values = 0;
    for (const Plan& plan : profile.plans) {
      keys = std::max(keys, width_of(plan.groups[index].keys));
      values = std::max(values, width_of(plan.groups[index].values));
    }
    cut_side(profile.groups[index].keys, keys);
    cut_side(profile.groups[index].values, values);
  }
}

// Bits follow variances, which only calibration knows.
Status check_learned(const Profile& profile) {
  const bool learned = !profile.groups.empty() &&
                       std::all_of(profile.groups.begin(), profile.groups.end(),
                                   [](const ProfileGroup& group) { return group.kind == GroupKind::kLearned; });
  if (learned) return absl::OkStatus();
  return argument_error("profile", "profile: got one that was not calibrated, expected learned bases to plan for");
}

double side_cost(const ProfileSide& side, const std::vector<Band>& bands) {
  double cost = 0.0;
  size_t coordinate = 0;
  for (const Band& band : bands) {
    for (int32_t i = 0; i < band.width; ++i) cost += side.variances[coordinate++] * distortion_of(band);
  }
  while (coordinate < side.variances.size()) cost += side.variances[coordinate++];
  return cost;
}

}  // namespace

StatusOr<Profile> plan_bits(const Profile& profile, const std::vector<PlanWish>& wishes) {
  if (wishes.empty()) return argument_error("plans", "plans: got none, expected 1 or more");
  FOLDKV_RETURN_IF_ERROR(check_learned(profile));
  Profile result = profile;
  result.plans.clear();
  for (size_t index = 0; index < wishes.size(); ++index) {
    FOLDKV_ASSIGN_OR_RETURN(result.plans.emplace_back(),
                            plan_of(profile, absl::StrCat("plans[", index, "]"), wishes[index]));
  }
  cut_bases(result);
  FOLDKV_RETURN_IF_ERROR(finish_profile(result));
  return result;
}

double expected_cost(const Profile& profile, const Plan& plan) {
  double cost = 0.0;
  for (const auto& [keys, values] : expected_costs(profile, plan)) cost += keys + values;
  return cost;
}

SideNumbers expected_costs(const Profile& profile, const Plan& plan) {
  SideNumbers costs;
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    costs.push_back({side_cost(profile.groups[index].keys, plan.groups[index].keys),
                     side_cost(profile.groups[index].values, plan.groups[index].values)});
  }
  return costs;
}

}  // namespace foldkv
