#pragma once

#include <cstdint>

#include "runtime/policy/score_table.h"

namespace foldkv {

// What a token's neighbours lend it, over `width` tokens around it.
enum class Pooling : int32_t {
  kNone = 1,
  // Sum over the neighbours there are, divided by the whole width: zeros beyond the ends (SnapKV, arXiv 2404.14469).
  kAverage = 2,
  // Largest of the neighbours there are.
  kMaximum = 3,
};

// Each head by itself, same shape. A NaN spreads to every token that it is a neighbour of. O(tokens) for kMaximum,
// O(tokens * width) for kAverage, which adds the neighbours afresh for each token: running sums would drift.
// Argument errors: "pool_width" unless odd and above 0 (not looked at by kNone), "pooling", "scores".
[[nodiscard]] StatusOr<ScoreTable> pool_tokens(const ScoreTable& scores, Pooling pooling, int64_t width);

}  // namespace foldkv
