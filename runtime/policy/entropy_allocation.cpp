#include "runtime/policy/entropy_allocation.h"

#include <cmath>
#include <numeric>

namespace foldkv {
namespace {

Status check_numbers(absl::string_view argument, std::span<const double> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0.0 && std::isfinite(numbers[i])) continue;
    const std::string name = absl::StrCat(argument, "[", i, "]");
    return argument_error(name, absl::StrCat(name, ": got ", numbers[i], ", expected 0 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<double> entropy_weight(const ScoreTable& scores) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("scores", scores));
  FOLDKV_RETURN_IF_ERROR(check_numbers("scores", scores.scores));
  const double sum = std::accumulate(scores.scores.begin(), scores.scores.end(), 0.0);
  if (sum == 0.0 || scores.scores.size() == 1) return 1.0;
  double entropy = 0.0;
  for (const double score : scores.scores) {
    const double share = score / sum;
    if (share > 0.0) entropy -= share * std::log(share);
  }
  return entropy / std::log(static_cast<double>(scores.scores.size()));
}

StatusOr<std::vector<int64_t>> truncated_budgets(std::span<const double> weights, int64_t total) {
  FOLDKV_RETURN_IF_ERROR(check_numbers("weights", weights));
  if (total < 0) return argument_error("total", absl::StrCat("total: got ", total, ", expected 0 or more"));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!weights.empty() && sum == 0.0) return argument_error("weights", "weights: all are 0");
  std::vector<int64_t> budgets;
  for (const double weight : weights) {
    budgets.push_back(static_cast<int64_t>(weight / sum * static_cast<double>(total)));
  }
  return budgets;
}

}  // namespace foldkv
