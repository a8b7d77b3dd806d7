#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/policy/score_table.h"
#include "runtime/policy/token_statistics.h"

namespace foldkv {

// What a sequence remembers of its attention between steps, one number for each head and token: heavy hitters
// (H2O, arXiv 2306.14048) and the persistence of importance (Scissorhands, arXiv 2305.17118).
enum class HistoryKind : int32_t {
  // Attention received. With decay 1 H2O's accumulator; with any decay the re-implementation of Scissorhands.
  kAttention = 1,
  // Minus the rows that gave the token less than an equal share: the paper's Scissorhands.
  kBelowShare = 2,
};

// history * decay, and then what the statistics' rows add. Tokens that the history does not know yet, at the end, begin
// at 0. Higher is kept first, for both kinds.
//   history  [query_heads][tokens so far]; none yet: no heads
// Argument errors: "history" (another number of heads, more tokens), "decay" beyond 0 to 1, those of reduce_rows.
template <typename Number>
[[nodiscard]] StatusOr<ScoreTable> extend_history(const ScoreTable& history,
                                                  const TokenStatisticsOf<Number>& statistics, HistoryKind kind,
                                                  double decay);

// The history of the tokens that are kept, in the order of their new places: an evicted token takes its past along.
//   kept  one rising list for each head, all of one length
// Argument errors: "kept" (another number of lists), "kept[1]" (another length, an index outside).
[[nodiscard]] StatusOr<ScoreTable> compact_history(const ScoreTable& history,
                                                   std::span<const std::vector<int32_t>> kept);

}  // namespace foldkv
