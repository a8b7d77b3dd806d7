#include "runtime/policy/dynamic_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/check_range.h"

namespace foldkv {
namespace {

Status check_counts(const DynamicShape& shape, std::span<const int64_t> counts) {
  FOLDKV_RETURN_IF_ERROR(check_range("layers", shape.layers, std::max<int64_t>(1, std::ssize(counts)), 65'536));
  const bool fine = !counts.empty() && std::ranges::min(counts) >= 0 && std::ranges::max(counts) > 0;
  if (fine) return absl::OkStatus();
  return argument_error("counts", "counts: expected one for each layer so far, 0 or more and not all 0");
}

int64_t sum_of(const std::vector<int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

}  // namespace

StatusOr<int64_t> dynamic_cap(const DynamicShape& shape) {
  FOLDKV_RETURN_IF_ERROR(check_range("base", shape.base, 0, std::numeric_limits<int32_t>::max()));
  FOLDKV_RETURN_IF_ERROR(check_range("tokens", shape.tokens, 0, std::numeric_limits<int32_t>::max()));
  if (!(shape.most_ratio >= 1.0 && shape.most_ratio <= 65'536.0)) {
    return argument_error("most_ratio", absl::StrCat("most_ratio: got ", shape.most_ratio, ", expected 1 to 65536"));
  }
  return std::min(static_cast<int64_t>(shape.most_ratio * static_cast<double>(shape.base)), shape.tokens);
}

StatusOr<std::vector<int64_t>> dynamic_author_budgets(const DynamicShape& shape, std::span<const int64_t> counts) {
  FOLDKV_ASSIGN_OR_RETURN(const int64_t cap, dynamic_cap(shape));
  FOLDKV_RETURN_IF_ERROR(check_counts(shape, counts));
  const int64_t total = shape.layers * shape.base;
  std::vector<int64_t> budgets(counts.begin(), counts.end());
  for (int64_t& count : budgets) count /= std::ssize(counts);
  const auto sum = static_cast<double>(std::max<int64_t>(1, sum_of(budgets)));
  for (int64_t& budget : budgets) {
    budget = static_cast<int64_t>(static_cast<double>(cap) * (static_cast<double>(budget) / sum));
  }
  const double factor = static_cast<double>(sum_of(budgets)) / static_cast<double>(total);
  for (int64_t& budget : budgets) {
    budget = !(factor > 0.0) ? 0 : static_cast<int64_t>(std::floor(static_cast<double>(budget) / factor));
  }
  budgets.back() += total - sum_of(budgets);
  for (int64_t& budget : budgets) budget = std::clamp<int64_t>(budget, 0, shape.tokens);
  return budgets;
}

}  // namespace foldkv
