#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

// Geometry and attention rules of a host's decoder, checked once.
namespace foldkv {

enum class Pairing : int32_t { kHalfSplit = 1, kInterleaved = 2 };

struct RotationRules {
  Pairing pairing = Pairing::kHalfSplit;
  std::vector<double> inverse_frequencies;
  double scale = 1.0;

  bool operator==(const RotationRules&) const = default;
};

struct LayerRules {
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  std::optional<RotationRules> rotation;
  int64_t window = 0;  // 0: none
  double attention_scale = 0.0;
  double soft_cap = 0.0;
  std::vector<float> query_norm;  // empty: none
  std::vector<float> key_norm;
  double norm_epsilon = 0.0;

  [[nodiscard]] int64_t query_width() const { return query_heads * head_size; }
  [[nodiscard]] int64_t key_width() const { return kv_heads * head_size; }
  // Layers of one kind may share a layer group: everything equal that gives keys and values their meaning.
  // Norm gains may differ, since cached keys are normed already.
  [[nodiscard]] bool same_kind(const LayerRules& other) const;
};

struct LayerWeights {
  TensorView query, key, value, output;
  TensorView query_bias, key_bias, value_bias, output_bias;
};

struct ModelDescription {
  std::vector<LayerRules> layers;
  int64_t hidden_size = 0;
  std::string name;
};

class Model {
 public:
  // Checks every field; errors name the layer and the field.
  [[nodiscard]] static StatusOr<std::shared_ptr<Model>> create(ModelDescription description);

  [[nodiscard]] int64_t layer_count() const { return static_cast<int64_t>(description_.layers.size()); }
  [[nodiscard]] const LayerRules& layer(int64_t index) const {
    return description_.layers[static_cast<size_t>(index)];
  }
  [[nodiscard]] int64_t hidden_size() const { return description_.hidden_size; }
  [[nodiscard]] const std::string& name() const { return description_.name; }
  [[nodiscard]] uint64_t fingerprint() const { return fingerprint_; }
  // 16-bit keys and values of one token over all layers.
  [[nodiscard]] int64_t full_token_bytes() const;

  // The views stay borrowed. State error once frozen.
  [[nodiscard]] Status bind_weights(int64_t layer, const LayerWeights& weights);
  [[nodiscard]] bool has_weights() const;         // of every layer
  [[nodiscard]] bool has_output_weights() const;  // of every layer
  [[nodiscard]] const LayerWeights& weights(int64_t layer) const { return weights_[static_cast<size_t>(layer)]; }
  // Called when the first sequence is created: bound weights may not change under it.
  void freeze() { frozen_.store(true); }

 private:
  explicit Model(ModelDescription description);

  ModelDescription description_;
  std::vector<LayerWeights> weights_;
  uint64_t fingerprint_ = 0;
  std::atomic<bool> frozen_{false};
};

}  // namespace foldkv
