#pragma once

#include "runtime/cache/attention_record.h"
#include "runtime/policy/score_table.h"

// Scores of tokens by the attention that queries to come are expected to pay (Expected Attention).
namespace foldkv {

// Of the memory that the call below works in, enough for every layer; 0 for policies of another scorer.
[[nodiscard]] int64_t forecast_workspace(const Model& model, const SequencePolicy& policy);

// One list: tokens [range.first, + range.count) of an exact set none of whose tokens is a latent, in the order of their
// slots, summed over its layers and heads; the softmax is over these. Without any query that may enter the forecast all
// are equal.
[[nodiscard]] StatusOr<ScoreTable> forecast_scores(const Sequence& sequence, const AttentionRecord& record,
                                                   const ExactSet& set, TokenRange range, std::byte* workspace);

}  // namespace foldkv
