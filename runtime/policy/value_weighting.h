#pragma once

#include "runtime/policy/score_table.h"

namespace foldkv {

// (score + epsilon) * norm: what a token adds to the output, and not only that it is looked at. Norms are of values
// (Expected Attention, arXiv 2510.00636: L2) or of values through the output projection (CriticalKV, arXiv 2502.03805:
// L1, epsilon 1e-4), [norms.heads][tokens]; each row serves scores.heads / norms.heads neighbouring heads, so that
// norms of KV heads go with scores of query heads. Argument errors: "norms" for other tokens or heads that do not
// divide, "scores".
[[nodiscard]] StatusOr<ScoreTable> weigh_by_norms(const ScoreTable& scores, double epsilon, const ScoreTable& norms);

// (score + epsilon) * the largest norm among the head's tokens: a constant of the head that does not change its order,
// but that of heads which share a budget (LAVa, arXiv 2509.09754: L1 norms of values).
[[nodiscard]] StatusOr<ScoreTable> weigh_by_head_maximum(const ScoreTable& scores, double epsilon,
                                                         const ScoreTable& norms);

// Scores below their head's mean are raised to it (DefensiveKV: a token that mattered little so far may yet).
[[nodiscard]] StatusOr<ScoreTable> raise_to_head_mean(ScoreTable scores);

}  // namespace foldkv
