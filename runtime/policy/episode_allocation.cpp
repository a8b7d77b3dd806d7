#include "runtime/policy/episode_allocation.h"

#include <algorithm>
#include <cmath>

#include "runtime/policy/entropy_allocation.h"
#include "runtime/policy/token_count.h"

namespace foldkv {

StatusOr<std::vector<double>> episode_weights(std::span<const double> similarities, double sharpness) {
  if (!(sharpness >= 0.0 && std::isfinite(sharpness))) {
    return argument_error("sharpness", absl::StrCat("sharpness: got ", sharpness, ", expected 0 or more"));
  }
  for (size_t layer = 0; layer < similarities.size(); ++layer) {
    if (std::isfinite(similarities[layer])) continue;
    const std::string name = absl::StrCat("similarities[", layer, "]");
    return argument_error(name, absl::StrCat(name, ": got ", similarities[layer]));
  }
  std::vector<double> weights;
  if (similarities.empty()) return weights;
  const auto [least, most] = std::ranges::minmax(similarities);
  for (const double similarity : similarities) {
    weights.push_back(most == least ? 1.0 : std::pow(1.0 - (similarity - least) / (most - least), sharpness));
  }
  return weights;
}

StatusOr<std::vector<int64_t>> episode_author_budgets(std::span<const double> weights, int64_t total,
                                                      double floor_share) {
  FOLDKV_ASSIGN_OR_RETURN(const Ratio share, make_ratio("floor_share", floor_share));
  FOLDKV_ASSIGN_OR_RETURN(std::vector<int64_t> budgets, truncated_budgets(weights, total));
  if (budgets.empty()) return budgets;
  const int64_t floor = total * share.numerator / (share.denominator * std::ssize(budgets));
  for (int64_t& budget : budgets) budget = std::max(budget, floor);
  return budgets;
}

}  // namespace foldkv
