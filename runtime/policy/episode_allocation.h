#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// EpiCache (arXiv 2509.17396): layers whose keys change much when earlier blocks are hidden keep more.
//   similarities  [layers] of keys with and without the earlier blocks, from calibration
// (1 - similarity scaled to 0 to 1) ^ sharpness, all equal: 1. Sharpness (alpha) is 1.1 in the paper, 2 in the code.
// The exact budgets are those of `apportion` with a quarter of the average as lower caps. Argument errors:
// "similarities[2]" (not finite), "sharpness" (below 0, not finite).
[[nodiscard]] StatusOr<std::vector<double>> episode_weights(std::span<const double> similarities, double sharpness);

// As the authors round: shares of the total, whole, raised to floor_share of the average, whole; raising comes last, so
// the sum may be above `total`. Argument errors: those of truncated_budgets, "floor_share" beyond 0 to 1.
[[nodiscard]] StatusOr<std::vector<int64_t>> episode_author_budgets(std::span<const double> weights, int64_t total,
                                                                    double floor_share);

}  // namespace foldkv
