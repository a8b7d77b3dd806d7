#pragma once

#include <cstdint>

#include "runtime/cache/attention_record.h"
#include "runtime/cache/due_sets.h"
#include "runtime/cache/kept_tokens.h"

// Which tokens of a sequence stay, by its eviction policy.
namespace foldkv {

// Of the memory that a decision works in; 0 when nothing will be evicted.
[[nodiscard]] StatusOr<int64_t> decide_workspace(const Runtime& runtime, const PreparedModel& model,
                                                 const PreparedProfile& profile,
                                                 const SequencePolicy& policy, const SequenceStorage& storage,
                                                 const RecordPlan& record, const EvictionMoment& moment);

// Without an eviction policy all tokens stay. At the end of a prompt every set is cut to its budget, and the budgets with
// it; afterwards a set that holds its budget and `interval` tokens more is cut to its budget again: where tokens become
// latents, when the next run does. Numeric error when scores are not numbers; nothing has changed then.
[[nodiscard]] StatusOr<KeptTokens> decide_tokens(const Sequence& sequence, const AttentionRecord& record,
                                                 const EvictionMoment& moment, std::byte* workspace);

}  // namespace foldkv
