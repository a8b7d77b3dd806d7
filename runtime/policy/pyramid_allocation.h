#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// PyramidKV (arXiv 2406.02069): lower layers keep more, falling by equal steps. Without regard to the window, which
// every layer keeps: base = capacity - window, on average; base / beta in the last layer.
struct PyramidShape {
  int64_t layers = 0;
  int64_t tokens = 0;    // of the prompt, window included
  int64_t capacity = 0;  // kept of them by a layer on average, window included
  int64_t window = 0;
  int64_t beta = 20;
};

// The tokens that each layer should keep beside the window, [layers], before rounding; they sum to layers * base. The
// first layer's share is cut to what there is and the last one's raised by as much; one layer, a prompt within the
// capacity and one of fewer than 2 * base tokens give equal shares, as the authors do. Argument errors name "layers",
// "tokens", "capacity" (window to 2^31), "window", "beta".
[[nodiscard]] StatusOr<std::vector<double>> pyramid_weights(const PyramidShape& shape);

// As the authors round: whole steps from the first layer on. The sum is not layers * base: 15,568 instead of 15,360 for
// capacity 512, window 32 and 32 layers. Otherwise pyramid_weights.
[[nodiscard]] StatusOr<std::vector<int64_t>> pyramid_author_budgets(const PyramidShape& shape);

}  // namespace foldkv
