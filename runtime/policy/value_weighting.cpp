#include "runtime/policy/value_weighting.h"

#include <algorithm>
#include <numeric>

namespace foldkv {
namespace {

Status check_norms(const ScoreTable& scores, const ScoreTable& norms) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("scores", scores));
  FOLDKV_RETURN_IF_ERROR(check_score_table("norms", norms));
  const bool divide = norms.heads > 0 && scores.heads % norms.heads == 0;
  if (divide && norms.tokens == scores.tokens) return absl::OkStatus();
  return argument_error("norms", absl::StrCat("norms: got ", norms.heads, " heads x ", norms.tokens,
                                              " tokens for scores of ", scores.heads, " x ", scores.tokens));
}

}  // namespace

StatusOr<ScoreTable> weigh_by_norms(const ScoreTable& scores, double epsilon, const ScoreTable& norms) {
  FOLDKV_RETURN_IF_ERROR(check_norms(scores, norms));
  ScoreTable weighted = scores;
  for (int64_t head = 0; head < scores.heads; ++head) {
    const std::span<const double> norm = norms.head(head / (scores.heads / norms.heads));
    const std::span<double> row = weighted.head(head);
    for (size_t t = 0; t < row.size(); ++t) row[t] = (row[t] + epsilon) * norm[t];
  }
  return weighted;
}

StatusOr<ScoreTable> weigh_by_head_maximum(const ScoreTable& scores, double epsilon, const ScoreTable& norms) {
  FOLDKV_RETURN_IF_ERROR(check_norms(scores, norms));
  ScoreTable largest = norms;
  if (norms.tokens > 0) {
    for (int64_t head = 0; head < norms.heads; ++head) {
      std::ranges::fill(largest.head(head), *std::ranges::max_element(norms.head(head)));
    }
  }
  return weigh_by_norms(scores, epsilon, largest);
}

StatusOr<ScoreTable> raise_to_head_mean(ScoreTable scores) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("scores", scores));
  for (int64_t head = 0; head < scores.heads; ++head) {
    const std::span<double> row = scores.head(head);
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
    for (double& score : row) {
      if (score < mean) score = mean;
    }
  }
  return scores;
}

}  // namespace foldkv
