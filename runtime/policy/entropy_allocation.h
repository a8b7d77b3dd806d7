#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/policy/score_table.h"

namespace foldkv {

// LAVa (arXiv 2509.09754): the weight of a layer is the entropy of all its scores, as shares of their sum, over that of
// equal shares: 1 when every token of every head counts the same, 0 when one is all. Scores 0 or more.
// All 0 count as equal; a single score has weight 1. Argument errors: "scores", "scores[7]" (below 0, not finite).
[[nodiscard]] StatusOr<double> entropy_weight(const ScoreTable& scores);

// As the authors round: shares of `total` cut to whole tokens, so that the sum is short by up to one for each layer.
// Argument errors: "weights[2]" (below 0, not finite), "weights" all 0, "total" below 0.
[[nodiscard]] StatusOr<std::vector<int64_t>> truncated_budgets(std::span<const double> weights, int64_t total);

}  // namespace foldkv
