#pragma once

#include <cstdint>
#include <vector>

#include "foldkv/foldkv.h"
#include "tests/support/handles.h"
#include "tests/support/layer_shape.h"

namespace foldkv::test {

// The C structs of a model of these layers, which must outlive them.
class LayerDescriptions {
 public:
  explicit LayerDescriptions(const std::vector<LayerShape>& layers)
      : rotations_(layers.size(), sized<foldkv_rotation>()), layers_(layers.size(), sized<foldkv_layer>()) {
    for (size_t index = 0; index < layers.size(); ++index) {
      const LayerShape& layer = layers[index];
      rotations_[index].pairing = layer.pairing;
      rotations_[index].inverse_frequencies = layer.frequencies.data();
      rotations_[index].frequency_count = static_cast<int32_t>(layer.frequencies.size());
      rotations_[index].scale = layer.rotation_scale;
      layers_[index].query_heads = layer.query_heads;
      layers_[index].kv_heads = layer.kv_heads;
      layers_[index].head_size = layer.head_size;
      layers_[index].window = layer.window;
      layers_[index].soft_cap = layer.soft_cap;
      layers_[index].attention_scale = layer.attention_scale;
      layers_[index].rotation = layer.frequencies.empty() ? nullptr : &rotations_[index];
    }
  }
  LayerDescriptions(const LayerDescriptions&) = delete;
  LayerDescriptions& operator=(const LayerDescriptions&) = delete;

  [[nodiscard]] foldkv_model_options options() const {
    auto options = sized<foldkv_model_options>();
    options.layer_count = static_cast<int32_t>(layers_.size());
    options.layers = layers_.data();
    return options;
  }

 private:
  std::vector<foldkv_rotation> rotations_;
  std::vector<foldkv_layer> layers_;
};

}  // namespace foldkv::test
