#pragma once

#include <cstdint>
#include <span>

#include "runtime/policy/score_table.h"

namespace foldkv {

enum class HeadReduction : int32_t { kMean = 1, kMaximum = 2, kSum = 3 };

// To `heads` heads, each from scores.heads / heads neighbours: query heads to the KV head they share, or, with heads 1,
// all heads of a layer to one list. A NaN stays one. Before or after pooling is the caller's choice: mean and average
// commute, maxima of one and averages of the other do not.
// Argument errors: "heads" unless it divides the heads of the scores, "head_reduction", "scores".
[[nodiscard]] StatusOr<ScoreTable> reduce_heads(const ScoreTable& scores, int64_t heads, HeadReduction reduction);

// Some heads, in the order given: those that vote in CompressKV (arXiv 2508.02401). Argument error: "heads[1]".
[[nodiscard]] StatusOr<ScoreTable> pick_heads(const ScoreTable& scores, std::span<const int32_t> heads);

// Sums over tables of one shape, for layers that keep the same tokens (BellowsKV-Evict). Argument error: "layers[1]"
// for another shape than that of the first. No layers: an empty table.
[[nodiscard]] StatusOr<ScoreTable> add_layers(std::span<const ScoreTable> layers);

}  // namespace foldkv
