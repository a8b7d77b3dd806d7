#pragma once

#include <cstdint>

#include "backends/interface/operations.h"
#include "runtime/cache/token_sets.h"

// What an eviction policy needs to have written down while a sequence is fed.
namespace foldkv {

struct AttentionNeeds {
  bool scores = false;      // of tokens, added up as rows are attended
  int64_t window_rows = 0;  // queries of the prompt's last rows
  bool moments = false;     // mean and covariance of the prompt's queries
};

// tokens: of the sequence, those of the step included.
[[nodiscard]] AttentionNeeds attention_needs(const EvictionPolicy& policy, bool prompt_open, int64_t tokens);

// Scores outlive the step that they were written down in.
[[nodiscard]] bool remembers_scores(const EvictionPolicy& policy);
// They outlive evictions too.
[[nodiscard]] bool scores_whole_life(const EvictionPolicy& policy);

// The list of scores that the heads of a view share.
[[nodiscard]] backend::ScoreHeads score_heads(const EvictionPolicy& policy, const ExactSet& set);

}  // namespace foldkv
