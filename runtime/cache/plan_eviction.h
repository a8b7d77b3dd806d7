#pragma once

#include "runtime/cache/set_budgets.h"

namespace foldkv {

// What a change leaves of each set, without scores: for estimates. Budgets that allocators find in attention count as
// equal; the sum over layers and heads is that of the real life, and a page of each differs at most. Pinned tokens that
// do not fit a budget are not counted.
[[nodiscard]] Status plan_eviction(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy,
                                   const SequenceStorage& storage, bool prompt_ends, StorageChange& change);

}  // namespace foldkv
