#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// PyramidInfer (arXiv 2405.12532): the share of the tokens that reach layer l which it keeps,
// (1 - decay) * (cos(pi * l / layers) + 1) / 2 + decay: 1 in the first layer, near `decay` in the last. Decay 0.9
// there. Argument errors: "layers" below 0, "decay" beyond 0 to 1.
[[nodiscard]] StatusOr<std::vector<double>> cosine_ratios(int64_t layers, double decay);

// What is left of everything after each layer: the products of the ratios up to it. Weights for `apportion`.
[[nodiscard]] std::vector<double> compound_shares(std::span<const double> ratios);

// The authors' counts: each layer keeps the whole part of its ratio of what the layer before it kept.
[[nodiscard]] std::vector<int64_t> compound_counts(std::span<const double> ratios, int64_t tokens);

}  // namespace foldkv
