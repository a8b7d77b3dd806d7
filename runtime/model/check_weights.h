#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace foldkv {

// Checks weights that a host binds to a layer: query, key and value must be there and every view must have a known
// number format, rows that do not overlap, and the shape that the layer and hidden_size give it ([out, in]; biases are
// 1 x out). Argument errors name the view, "weights.key" for example; state error when the model has no hidden size.
[[nodiscard]] Status check_weights(const LayerWeights& weights, const LayerRules& layer, int64_t hidden_size);

}  // namespace foldkv
