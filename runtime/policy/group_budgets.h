#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// The weight of a layer group is the sum of the weights of its layers (architecture.md, decision 9).
// Argument error: "groups[1].layers[2]" for a layer outside.
[[nodiscard]] StatusOr<std::vector<double>> group_weight_sums(std::span<const double> layer_weights,
                                                              std::span<const std::vector<int32_t>> groups);

// Tokens that each group keeps, in all of its layers, so that the layers of all groups keep `total` together, each
// between `lower` and `upper`: `apportion` of the sums, divided by the number of layers of the group and cut to whole
// tokens, so that the layers' sum is short of `total` by less than the number of layers.
// Argument errors: as above, "groups[1]" without layers, those of apportion.
[[nodiscard]] StatusOr<std::vector<int64_t>> group_budgets(std::span<const double> layer_weights,
                                                           std::span<const std::vector<int32_t>> groups, int64_t lower,
                                                           int64_t upper, int64_t total);

}  // namespace foldkv
