#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace foldkv {

// Layers that share latents, rising.
using LayerGroup = std::vector<int32_t>;

// Neighbours of one kind without a window, layers_per_group at a time, the last of each run possibly fewer. Layers
// with a window stay exact and are passed over, so that full-attention layers between them (Gemma) still share a group.
// Argument errors: "layers_per_group" below 1; "model" when every layer has a window, or a group would be too wide.
[[nodiscard]] StatusOr<std::vector<LayerGroup>> make_layer_groups(const Model& model, int32_t layers_per_group);

// Groups that a host gives: each must be rising, in range, of one kind (windows included) and disjoint from the others.
// Result: the same groups in rising order of their first layer. Argument errors name "groups[1].layers[2]", say.
[[nodiscard]] StatusOr<std::vector<LayerGroup>> check_layer_groups(const Model& model, std::vector<LayerGroup> groups);

}  // namespace foldkv
