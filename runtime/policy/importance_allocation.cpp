#include "runtime/policy/importance_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/check_range.h"

namespace foldkv {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 36;

Status check_importances(std::span<const double> importances) {
  for (size_t layer = 0; layer < importances.size(); ++layer) {
    if (importances[layer] >= 0.0 && std::isfinite(importances[layer])) continue;
    const std::string name = absl::StrCat("importances[", layer, "]");
    return argument_error(name, absl::StrCat(name, ": got ", importances[layer], ", expected 0 or more"));
  }
  return absl::OkStatus();
}

std::vector<size_t> by_importance(std::span<const double> importances) {
  std::vector<size_t> order(importances.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return importances[a] > importances[b]; });
  return order;
}

}  // namespace

StatusOr<int64_t> importance_cap(const ImportanceShape& shape, int64_t layers) {
  FOLDKV_RETURN_IF_ERROR(check_range("total", shape.total, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_range("floor", shape.floor, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_range("layers", layers, 1, 65'536));
  if (!(shape.most_ratio >= 1.0 && shape.most_ratio <= 65'536.0)) {
    return argument_error("most_ratio", absl::StrCat("most_ratio: got ", shape.most_ratio, ", expected 1 to 65536"));
  }
  const double cap = shape.most_ratio * static_cast<double>(shape.total) / static_cast<double>(layers);
  return std::max(shape.floor, static_cast<int64_t>(cap));
}

StatusOr<std::vector<double>> importance_weights(const ImportanceShape& shape, std::span<const double> importances) {
  if (importances.empty()) return std::vector<double>();
  FOLDKV_RETURN_IF_ERROR(importance_cap(shape, std::ssize(importances)).status());
  FOLDKV_RETURN_IF_ERROR(check_importances(importances));
  const auto layers = static_cast<double>(importances.size());
  const double rest = std::max(0.0, static_cast<double>(shape.total) - layers * static_cast<double>(shape.floor));
  const double sum = std::accumulate(importances.begin(), importances.end(), 0.0);
  std::vector<double> weights;
  for (const double importance : importances) {
    const double share = sum == 0.0 ? 1.0 / layers : importance / sum;
    weights.push_back(static_cast<double>(shape.floor) + share * rest);
  }
  return weights;
}

StatusOr<std::vector<int64_t>> importance_author_budgets(const ImportanceShape& shape,
                                                         std::span<const double> importances) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> weights, importance_weights(shape, importances));
  if (weights.empty()) return std::vector<int64_t>();
  FOLDKV_ASSIGN_OR_RETURN(const int64_t cap, importance_cap(shape, std::ssize(weights)));
  std::vector<int64_t> budgets;
  int64_t missing = shape.total;
  for (const double weight : weights) {
    budgets.push_back(std::clamp(static_cast<int64_t>(std::nearbyint(weight)), shape.floor, cap));
    missing -= budgets.back();
  }
  const std::vector<size_t> order = by_importance(importances);
  for (bool changed = true; missing != 0 && changed;) {
    changed = false;
    for (const size_t layer : order) {
      if (missing == 0 || budgets[layer] == (missing > 0 ? cap : shape.floor)) continue;
      const int64_t step = missing > 0 ? 1 : -1;
      budgets[layer] += step;
      missing -= step;
      changed = true;
    }
  }
  return budgets;
}

}  // namespace foldkv
