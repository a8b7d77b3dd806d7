#include "samples/lab/plan_ratios.h"

#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {

std::vector<std::string> plan_names(const std::vector<double>& ratios) {
  std::vector<std::string> names;
  for (const double ratio : ratios) names.push_back(absl::StrCat(ratio, "x"));
  return names;
}

absl::StatusOr<foldkv::Profile> plan_ratios(const foldkv::Profile& profile, const std::vector<double>& ratios,
                                            const std::vector<double>& group_weights) {
  const std::vector<std::string> names = plan_names(ratios);
  std::vector<foldkv_plan_options> plans;
  for (size_t index = 0; index < ratios.size(); ++index) {
    plans.push_back(foldkv::init<foldkv_plan_options>());
    plans.back().name = names[index].c_str();
    plans.back().ratio = ratios[index];
    plans.back().group_weights = group_weights.empty() ? nullptr : group_weights.data();
  }
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile planned, "planning bits", profile.plan(plans));
  return planned;
}

}  // namespace foldkv_lab
