#pragma once

#include <cstdint>
#include <string>

#include "runtime/model/model.h"

namespace foldkv::test {

// A layer in which every rule is set to something that is not its default.
inline LayerRules sample_layer() {
  LayerRules layer;
  layer.query_heads = 6;
  layer.kv_heads = 2;
  layer.head_size = 4;
  layer.rotation = RotationRules{Pairing::kInterleaved, {1.0, 0.01}, 1.25};
  layer.window = 32;
  layer.attention_scale = 0.75;
  layer.soft_cap = 50.0;
  layer.query_norm = {1.0f, 1.5f, 0.5f, 2.0f};
  layer.key_norm = {0.5f, 1.0f, 1.0f, 2.0f};
  layer.norm_epsilon = 1e-5;
  return layer;
}

// layer_count of them, hidden size 12, named "sample".
inline ModelDescription sample_description(int64_t layer_count) {
  ModelDescription description;
  description.layers.assign(static_cast<size_t>(layer_count), sample_layer());
  description.hidden_size = 12;
  description.name = "sample";
  return description;
}

}  // namespace foldkv::test
