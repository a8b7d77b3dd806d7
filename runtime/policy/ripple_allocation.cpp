#include "runtime/policy/ripple_allocation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foldkv {
namespace {

Status check_factor(absl::string_view argument, double factor) {
  if (factor >= 1.0 && std::isfinite(factor)) return absl::OkStatus();
  return argument_error(argument, absl::StrCat(argument, ": got ", factor, ", expected 1 or more"));
}

Status check_sensitivities(std::span<const double> sensitivities) {
  for (size_t layer = 0; layer < sensitivities.size(); ++layer) {
    if (sensitivities[layer] >= 0.0 && std::isfinite(sensitivities[layer])) continue;
    const std::string name = absl::StrCat("sensitivities[", layer, "]");
    return argument_error(name, absl::StrCat(name, ": got ", sensitivities[layer], ", expected 0 or more"));
  }
  return absl::OkStatus();
}

void divide_by_mean(std::vector<double>& weights) {
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  for (double& weight : weights) weight /= mean;
}

}  // namespace

StatusOr<std::vector<double>> ripple_weights(std::span<const double> sensitivities, double ratio, double gamma,
                                             RippleOrder order) {
  FOLDKV_RETURN_IF_ERROR(check_sensitivities(sensitivities));
  FOLDKV_RETURN_IF_ERROR(check_factor("ratio", ratio));
  FOLDKV_RETURN_IF_ERROR(check_factor("gamma", gamma));
  if (order != RippleOrder::kClipFirst && order != RippleOrder::kNormalizeFirst) {
    return argument_error("order", absl::StrCat("order: got ", static_cast<int32_t>(order)));
  }
  if (sensitivities.empty()) return std::vector<double>();
  const auto [least, most] = std::ranges::minmax(sensitivities);
  std::vector<double> weights;
  for (const double sensitivity : sensitivities) {
    weights.push_back(most == least ? 1.0 : std::pow(ratio, (sensitivity - least) / (most - least)));
  }
  if (order == RippleOrder::kNormalizeFirst) divide_by_mean(weights);
  for (double& weight : weights) weight = std::clamp(weight, 1.0 / gamma, gamma);
  divide_by_mean(weights);
  return weights;
}

}  // namespace foldkv
