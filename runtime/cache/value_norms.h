#pragma once

#include <cstdint>

#include "runtime/cache/sequence.h"
#include "runtime/policy/score_table.h"

// How long the values of exact tokens are, for policies that weigh scores by it.
namespace foldkv {

// Of the memory that the call below works in, enough for every layer; 0 when the policy does not weigh.
[[nodiscard]] StatusOr<int64_t> norms_workspace(const Runtime& runtime, const Model& model, const SequencePolicy& policy);

// Norms of one KV head's values in slots [0, tokens), as the policy wants them; through the output projection the mean
// over the query heads that share the values. 1 x tokens.
[[nodiscard]] StatusOr<ScoreTable> value_norms(const Sequence& sequence, int64_t layer, int64_t head, int64_t tokens,
                                               std::byte* workspace);

}  // namespace foldkv
