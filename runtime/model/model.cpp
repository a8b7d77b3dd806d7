#include "runtime/model/model.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "runtime/base/fingerprint.h"
#include "runtime/model/check_description.h"
#include "runtime/model/check_weights.h"

namespace foldkv {
namespace {

// Names what is hashed, so that a later change of the rules can change every fingerprint at once.
constexpr char kFingerprintRules[] = "foldkv model 1";

// Hosts compute these numbers with their own functions, or read them from files as f32. Rounded to f32 they are equal
// where the hosts meant the same; a difference beyond that matters.
void add_rounded(Fingerprint& fingerprint, double number) {
  fingerprint.add(static_cast<double>(static_cast<float>(number)));
}

void add_rotation(Fingerprint& fingerprint, const std::optional<RotationRules>& rotation) {
  fingerprint.add(int64_t{rotation.has_value()});
  if (!rotation.has_value()) return;
  fingerprint.add(static_cast<int64_t>(rotation->pairing)).add(std::ssize(rotation->inverse_frequencies));
  for (double frequency : rotation->inverse_frequencies) add_rounded(fingerprint, frequency);
  add_rounded(fingerprint, rotation->scale);
}

void add_layer(Fingerprint& fingerprint, const LayerRules& layer) {
  fingerprint.add(layer.query_heads).add(layer.kv_heads).add(layer.head_size);
  add_rotation(fingerprint, layer.rotation);
  fingerprint.add(layer.window);
  add_rounded(fingerprint, layer.attention_scale);
  add_rounded(fingerprint, layer.soft_cap);
  fingerprint.add(std::span<const float>(layer.query_norm)).add(std::span<const float>(layer.key_norm));
  const bool has_norm = !layer.query_norm.empty() || !layer.key_norm.empty();
  add_rounded(fingerprint, has_norm ? layer.norm_epsilon : 0.0);
}

uint64_t fingerprint_of(const std::vector<LayerRules>& layers) {
  Fingerprint fingerprint;
  fingerprint.add(std::string(kFingerprintRules)).add(std::ssize(layers));
  for (const LayerRules& layer : layers) add_layer(fingerprint, layer);
  return fingerprint.value();
}

}  // namespace

bool LayerRules::same_kind(const LayerRules& other) const {
  return kv_heads == other.kv_heads && head_size == other.head_size && rotation == other.rotation &&
         window == other.window && key_norm.empty() == other.key_norm.empty();
}

StatusOr<std::shared_ptr<Model>> Model::create(ModelDescription description) {
  FOLDKV_RETURN_IF_ERROR(complete_description(description));
  return std::shared_ptr<Model>(new Model(std::move(description)));
}

Model::Model(ModelDescription description)
    : description_(std::move(description)),
      weights_(description_.layers.size()),
      fingerprint_(fingerprint_of(description_.layers)) {}

int64_t Model::full_token_bytes() const {
  int64_t bytes = 0;
  for (const LayerRules& layer : description_.layers) bytes += 2 * bytes_of(NumberFormat::kF16) * layer.key_width();
  return bytes;
}

Status Model::bind_weights(int64_t layer, const LayerWeights& weights) {
  if (frozen_) {
    return state_error("weights are bound before the first sequence of the model is created, not afterwards");
  }
  if (layer < 0 || layer >= layer_count()) {
    return argument_error("layer", absl::StrCat("got ", layer, ", expected 0 to ", layer_count() - 1));
  }
  FOLDKV_RETURN_IF_ERROR(check_weights(weights, description_.layers[static_cast<size_t>(layer)], hidden_size()));
  weights_[static_cast<size_t>(layer)] = weights;
  return absl::OkStatus();
}

bool Model::has_weights() const {
  return std::all_of(weights_.begin(), weights_.end(), [](const LayerWeights& layer) { return layer.query.present(); });
}

bool Model::has_output_weights() const {
  return std::all_of(weights_.begin(), weights_.end(),
                     [](const LayerWeights& layer) { return layer.output.present(); });
}

}  // namespace foldkv
