#include "runtime/cache/plan_eviction.h"

#include <algorithm>

#include "runtime/cache/due_sets.h"

namespace foldkv {
namespace {

// The counts of a set that is cut: it keeps its budget, or what is kept always if that is more.
void cut_set(const SequenceStorage& storage, size_t index, const TokenBudget& budget, int64_t sinks,
             StorageChange& change) {
  const ExactSet& set = storage.exact_sets()[index];
  const int64_t tokens = storage.tokens_of(set, change.new_tokens);
  if (!set.grouped) {
    change.exact_counts[index] = std::min(tokens, std::max(budget.tokens, sinks + budget.recent));
    return;
  }
  const int64_t exact = set.token_count + change.new_tokens - change.encoded_tokens;
  int64_t& latents = change.latent_counts[static_cast<size_t>(storage.latent_index_of(set.group))];
  latents = std::clamp<int64_t>(budget.tokens - exact, 0, latents);
}

}  // namespace

Status plan_eviction(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy,
                     const SequenceStorage& storage, bool prompt_ends, StorageChange& change) {
  const std::vector<bool> due = due_sets(policy, storage, {change, prompt_ends, false, false});
  if (std::find(due.begin(), due.end(), true) == due.end()) return absl::OkStatus();
  const int64_t fed = storage.token_count() + change.new_tokens;
  FOLDKV_ASSIGN_OR_RETURN(change.budgets, planned_budgets(model, profile, policy, storage, fed));
  for (const ExactSet& set : storage.exact_sets()) {
    change.exact_counts.push_back(set.token_count + change.new_tokens - (set.grouped ? change.encoded_tokens : 0));
  }
  for (const LatentSet& set : storage.latent_sets()) {
    change.latent_counts.push_back(set.token_count + change.encoded_tokens);
  }
  const int64_t sinks = count_policy_tokens(policy.eviction->policy, fed).sinks;
  for (size_t index = 0; index < due.size(); ++index) {
    if (due[index]) cut_set(storage, index, change.budgets[index], sinks, change);
  }
  return absl::OkStatus();
}

}  // namespace foldkv
