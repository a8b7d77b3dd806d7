#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// CompressKV (arXiv 2508.02401): every layer keeps `floor` tokens, and what is left of the total goes to layers by the
// importance that calibration found, up to `most_ratio` times the average. Counts include the window.
struct ImportanceShape {
  int64_t total = 0;
  int64_t floor = 32;
  double most_ratio = 3.0;
};

// The cap of a layer: most_ratio * total / layers, whole, at least the floor.
[[nodiscard]] StatusOr<int64_t> importance_cap(const ImportanceShape& shape, int64_t layers);

// floor + share of (total - layers * floor), [layers]: weights for `apportion` between floor and importance_cap. Shares
// are those of the importances in their sum; all 0: equal. A total below layers * floor gives equal weights.
// Argument errors: "importances[2]" (below 0, not finite), "total" and "floor" below 0, "most_ratio" below 1.
[[nodiscard]] StatusOr<std::vector<double>> importance_weights(const ImportanceShape& shape,
                                                               std::span<const double> importances);

// As the authors round: weights to the nearest whole token, halves to the even one, cut to floor and cap; then one
// token at a time in order of falling importance (ties to the lower layer), over and over, until the sum is `total` or
// no layer can change. Argument errors as above.
[[nodiscard]] StatusOr<std::vector<int64_t>> importance_author_budgets(const ImportanceShape& shape,
                                                                       std::span<const double> importances);

}  // namespace foldkv
