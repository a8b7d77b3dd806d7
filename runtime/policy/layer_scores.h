#pragma once

#include <cstdint>
#include <span>

#include "runtime/policy/eviction_policy.h"
#include "runtime/policy/score_table.h"
#include "runtime/policy/token_statistics.h"

namespace foldkv {

// From the attention of a prompt's last rows to lists of scores, by a policy's row reduction, pooling and head reduction.
//   range   the columns that pooling sees: those that compete, or all
//   lists   the KV heads, or 1 where heads decide as one. Under SelectionScope::kGroup lists are left to pool_lists, after
//           layers have been added
//   voting  query heads that vote; empty: all
// [lists][range.count]. Argument errors are those of the parts.
[[nodiscard]] StatusOr<ScoreTable> reduce_window(const EvictionPolicy& policy, const TokenStatistics& statistics,
                                                 TokenRange range, int64_t lists, std::span<const int32_t> voting);

// Lists that were reduced before they are pooled: those of running scores, and sums over the layers of a group.
[[nodiscard]] StatusOr<ScoreTable> pool_lists(const EvictionPolicy& policy, const ScoreTable& lists);

// Scores of tokens, and what a first stage looks at: the scores before weighting.
struct WeighedScores {
  ScoreTable base;
  ScoreTable scores;
};

// norms [KV heads][tokens of the lists], looked at when the policy weighs; a list that stands for several heads takes the
// mean of theirs.
[[nodiscard]] StatusOr<WeighedScores> weigh_lists(const EvictionPolicy& policy, ScoreTable lists, const ScoreTable& norms);

}  // namespace foldkv
