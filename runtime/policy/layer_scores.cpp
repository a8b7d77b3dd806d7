#include "runtime/policy/layer_scores.h"

#include <utility>

#include "runtime/policy/pooling.h"
#include "runtime/policy/row_reduction.h"
#include "runtime/policy/value_weighting.h"

namespace foldkv {
StatusOr<ScoreTable> reduce_window(const EvictionPolicy& policy, const TokenStatistics& statistics, TokenRange range,
                                   int64_t lists, std::span<const int32_t> voting) {
  const ReductionRules& rules = policy.reduction;
  FOLDKV_ASSIGN_OR_RETURN(ScoreTable table, reduce_rows(statistics, policy.scoring.rows, policy.scoring.gamma, range));
  if (!voting.empty()) {
    FOLDKV_ASSIGN_OR_RETURN(table, pick_heads(table, voting));
  }
  const bool grouped = policy.selection.scope == SelectionScope::kGroup;
  if (rules.pool_before_heads && !grouped) {
    FOLDKV_ASSIGN_OR_RETURN(table, pool_lists(policy, table));
  }
  FOLDKV_ASSIGN_OR_RETURN(table, reduce_heads(table, lists, rules.heads));
  return rules.pool_before_heads || grouped ? std::move(table) : pool_lists(policy, table);
}

StatusOr<ScoreTable> pool_lists(const EvictionPolicy& policy, const ScoreTable& lists) {
  return pool_tokens(lists, policy.reduction.pooling, policy.reduction.pool_width);
}

StatusOr<WeighedScores> weigh_lists(const EvictionPolicy& policy, ScoreTable lists, const ScoreTable& norms) {
  const ReductionRules& rules = policy.reduction;
  if (rules.raise_to_mean) {
    FOLDKV_ASSIGN_OR_RETURN(lists, raise_to_head_mean(std::move(lists)));
  }
  WeighedScores result{lists, lists};
  if (rules.weighting == ValueWeighting::kNone) return result;
  ScoreTable shared = norms;
  if (norms.heads > result.base.heads) {
    FOLDKV_ASSIGN_OR_RETURN(shared, reduce_heads(norms, result.base.heads, HeadReduction::kMean));
  }
  FOLDKV_ASSIGN_OR_RETURN(result.scores, rules.weighting == ValueWeighting::kHeadValueMaximum
                                             ? weigh_by_head_maximum(result.base, rules.epsilon, shared)
                                             : weigh_by_norms(result.base, rules.epsilon, shared));
  return result;
}

}  // namespace foldkv
