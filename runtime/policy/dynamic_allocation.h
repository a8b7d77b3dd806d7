#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// DynamicKV (arXiv 2412.14838): a layer's weight is the number of its scores among the best base * heads * layers of
// all layers so far (count_joint_best), at most `most_ratio` * base tokens a layer while the prompt runs. The counts
// are the weights for `apportion`; below is the authors' rounding of them.
struct DynamicShape {
  int64_t layers = 0;  // of the model, also while fewer have counts
  int64_t base = 0;    // tokens of a layer on average, window left out
  int64_t tokens = 0;  // of the prompt, window left out
  double most_ratio = 10.0;
};

// The cap of a layer: most_ratio * base, whole, within the tokens. Argument errors: "base", "tokens", "most_ratio".
[[nodiscard]] StatusOr<int64_t> dynamic_cap(const DynamicShape& shape);

// As the authors round: counts over the layers so far, whole; shares of the cap, whole, scaled to layers * base by one
// factor and cut to whole tokens again; the last layer takes what the sum lacks, and may fall below 0 or rise above the
// tokens for that: both are cut, and the sum with them.
//   counts  [layers so far], of query heads together
// Argument errors: those of dynamic_cap, "layers" (fewer than counts), "counts" (none, below 0, all 0).
[[nodiscard]] StatusOr<std::vector<int64_t>> dynamic_author_budgets(const DynamicShape& shape,
                                                                    std::span<const int64_t> counts);

}  // namespace foldkv
