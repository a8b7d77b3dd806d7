#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cache/set_scores.h"

namespace foldkv {

// Tokens that each exact set may hold from now on, by the policy's allocators: as they were where that was decided before.
// A set of several layers holds the mean of their budgets, in whole tokens that sum to the layers' budgets where their numbers
// allow it.
[[nodiscard]] StatusOr<std::vector<TokenBudget>> set_budgets(const Sequence& sequence, const SetScores& scores);

// Likewise before there are scores: what allocators look for in attention is not known then, and counts as equal.
[[nodiscard]] StatusOr<std::vector<TokenBudget>> planned_budgets(const Model& model, const PreparedProfile& profile,
                                                                 const SequencePolicy& policy,
                                                                 const SequenceStorage& storage, int64_t fed_tokens);

}  // namespace foldkv
