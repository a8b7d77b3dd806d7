#include "runtime/policy/group_budgets.h"

#include "runtime/base/check_range.h"
#include "runtime/policy/apportion.h"

namespace foldkv {

StatusOr<std::vector<double>> group_weight_sums(std::span<const double> layer_weights,
                                                std::span<const std::vector<int32_t>> groups) {
  std::vector<double> sums(groups.size());
  for (size_t group = 0; group < groups.size(); ++group) {
    for (size_t i = 0; i < groups[group].size(); ++i) {
      const int32_t layer = groups[group][i];
      FOLDKV_RETURN_IF_ERROR(
          check_range(absl::StrCat("groups[", group, "].layers[", i, "]"), layer, 0, std::ssize(layer_weights) - 1));
      sums[group] += layer_weights[static_cast<size_t>(layer)];
    }
  }
  return sums;
}

StatusOr<std::vector<int64_t>> group_budgets(std::span<const double> layer_weights,
                                             std::span<const std::vector<int32_t>> groups, int64_t lower, int64_t upper,
                                             int64_t total) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> weights, group_weight_sums(layer_weights, groups));
  FOLDKV_RETURN_IF_ERROR(check_range("lower", lower, 0, int64_t{1} << 36));
  FOLDKV_RETURN_IF_ERROR(check_range("upper", upper, lower, int64_t{1} << 36));
  std::vector<int64_t> lowers;
  std::vector<int64_t> uppers;
  for (size_t group = 0; group < groups.size(); ++group) {
    const int64_t layers = std::ssize(groups[group]);
    FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat("groups[", group, "]"), layers, 1, 65'536));
    lowers.push_back(layers * lower);
    uppers.push_back(layers * upper);
  }
  FOLDKV_ASSIGN_OR_RETURN(std::vector<int64_t> budgets, apportion(weights, lowers, uppers, total));
  for (size_t group = 0; group < groups.size(); ++group) budgets[group] /= std::ssize(groups[group]);
  return budgets;
}

}  // namespace foldkv
