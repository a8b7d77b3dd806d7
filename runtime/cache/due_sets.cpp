#include "runtime/cache/due_sets.h"

#include "runtime/policy/policy_budgets.h"

namespace foldkv {
namespace {

// Whether the first decision, which gives all sets their budgets, is due.
bool first_due(const EvictionPolicy& policy, int64_t fed_tokens, int64_t spare) {
  if (policy.budget.layers == LayerAllocator::kCosine) return true;
  return fed_tokens >= count_policy_tokens(policy, fed_tokens).budget + spare;
}

}  // namespace

std::vector<bool> due_sets(const SequencePolicy& policy, const SequenceStorage& storage, const EvictionMoment& moment) {
  std::vector<bool> due(storage.exact_sets().size());
  if (policy.eviction == nullptr || moment.prompt_continues) return due;
  const EvictionPolicy& rules = policy.eviction->policy;
  // What a policy that is done with the prompt would go by has not been written down.
  const bool blind = rules.selection.interval == 0 && rules.scoring.scorer != Scorer::kPosition;
  const bool at_once = moment.prompt_ends || (moment.asked && !blind);
  const int64_t spare = at_once ? 1 : rules.selection.interval;
  if (rules.scoring.scorer == Scorer::kNone || spare == 0) return due;
  const bool first = first_due(rules, storage.token_count() + moment.change.new_tokens, spare);
  for (size_t index = 0; index < due.size(); ++index) {
    const ExactSet& set = storage.exact_sets()[index];
    if (!set.evicts || (set.grouped && moment.change.encoded_tokens == 0)) continue;
    const int64_t tokens = storage.tokens_of(set, moment.change.new_tokens);
    due[index] = set.budget.tokens == 0 ? first : tokens >= set.budget.tokens + spare;
  }
  return due;
}

}  // namespace foldkv
