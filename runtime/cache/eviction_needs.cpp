#include "runtime/cache/eviction_needs.h"

#include <algorithm>

#include "runtime/policy/policy_budgets.h"

namespace foldkv {

AttentionNeeds attention_needs(const EvictionPolicy& policy, bool prompt_open, int64_t tokens) {
  const bool generation = policy.selection.interval > 0;
  switch (policy.scoring.scorer) {
    case Scorer::kWindow:
      // A share of a few tokens may be none; somebody must vote.
      if (prompt_open) return {false, std::max<int64_t>(1, count_policy_tokens(policy, tokens).rows), false};
      return {generation, 0, false};
    case Scorer::kLastRow: return prompt_open ? AttentionNeeds{false, 1, false} : AttentionNeeds{generation, 0, false};
    case Scorer::kAccumulated: return {prompt_open || generation, 0, false};
    case Scorer::kExpectedAttention: return {false, 0, prompt_open};
    case Scorer::kNone:
    case Scorer::kPosition: break;
  }
  return {};
}

bool remembers_scores(const EvictionPolicy& policy) {
  return scores_whole_life(policy) || (policy.scoring.scorer == Scorer::kWindow && policy.selection.interval > 0);
}

bool scores_whole_life(const EvictionPolicy& policy) { return policy.scoring.scorer == Scorer::kAccumulated; }

backend::ScoreHeads score_heads(const EvictionPolicy& policy, const ExactSet& set) {
  if (set.grouped || policy.selection.scope != SelectionScope::kHead) return backend::ScoreHeads::kAllHeads;
  return policy.reduction.heads == HeadReduction::kMaximum ? backend::ScoreHeads::kGroupMaximum
                                                           : backend::ScoreHeads::kGroupMean;
}

}  // namespace foldkv
