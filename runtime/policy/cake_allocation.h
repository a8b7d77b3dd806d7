#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/policy/token_statistics.h"

namespace foldkv {

// CAKE (arXiv 2503.12491): how much a layer wants, from its window's attention to the prefix.

// Sum of -A log(A + 1e-10) over heads, rows and the range's columns. Needs entropies.
template <typename Number>
[[nodiscard]] StatusOr<double> attention_entropy(const TokenStatisticsOf<Number>& statistics, TokenRange range);

// Sum over heads and the range's columns of the unbiased variance over the rows. Needs sums and squares; one row: 0.
template <typename Number>
[[nodiscard]] StatusOr<double> temporal_variance(const TokenStatisticsOf<Number>& statistics, TokenRange range);

// entropy ^ (1 / entropy_temperature) * variance ^ (1 / variance_temperature): tau1 and tau2 of the paper, above 0. The
// weight of a layer for `apportion`. Argument errors: "entropy" and "variance" below 0 or not finite, the temperatures.
[[nodiscard]] StatusOr<double> cake_preference(double entropy, double variance, double entropy_temperature,
                                               double variance_temperature);

// As the authors round: quotas of `total` cut to whole tokens and to `cap`, what is cut off spread evenly over layers
// below the cap, and then once more whatever the sum lacks. A layer that the spreading lifts above the cap is cut again
// and its tokens are lost, so the sum may fall short. Argument errors: "preferences[1]" (below 0, not finite),
// "preferences" all 0, "total" and "cap" below 0.
[[nodiscard]] StatusOr<std::vector<int64_t>> cake_author_budgets(std::span<const double> preferences, int64_t total,
                                                                 int64_t cap);

}  // namespace foldkv
