#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// How RippleKV keeps its weights within [1 / gamma, gamma]. The paper's text clips and then divides by the mean, which
// may leave the range again; dividing first is what a range around 1 suggests (methods.md section 2).
enum class RippleOrder : int32_t { kClipFirst = 1, kNormalizeFirst = 2 };

// RippleKV (arXiv 2608.08684): weights of layers, of mean 1, from their sensitivities. Those are scaled to 0 to 1, all
// equal to 0; the weight is ratio ^ scaled, so that the most sensitive layer has `ratio` times the tokens of the least
// sensitive one before clipping.
//   ratio 1 or more; gamma 1 or more
// Argument errors: "sensitivities[2]" (below 0, not finite), "ratio", "gamma", "order". No layers: no weights.
[[nodiscard]] StatusOr<std::vector<double>> ripple_weights(std::span<const double> sensitivities, double ratio,
                                                           double gamma, RippleOrder order = RippleOrder::kClipFirst);

}  // namespace foldkv
