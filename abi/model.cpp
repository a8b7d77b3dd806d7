#include <cmath>
#include <string>

#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_struct.h"
#include "abi/read_tensor.h"

namespace foldkv::abi {
namespace {

constexpr int32_t kLargestHeadSize = 512;
constexpr int32_t kLargestLayerCount = 4096;

StatusOr<RotationRules> read_rotation(const foldkv_rotation* source, const std::string& name) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_rotation rotation, read_struct(source, name));
  if (rotation.pairing != FOLDKV_PAIRING_HALF_SPLIT && rotation.pairing != FOLDKV_PAIRING_INTERLEAVED) {
    return argument_error(name + ".pairing", absl::StrCat("is ", rotation.pairing, ", expected 1 or 2; there is no default"));
  }
  if (rotation.frequency_count < 1 || rotation.frequency_count > kLargestHeadSize / 2) {
    return argument_error(name + ".frequency_count", absl::StrCat("is ", rotation.frequency_count,
                                                                  ", expected 1 to ", kLargestHeadSize / 2));
  }
  FOLDKV_RETURN_IF_ERROR(require(rotation.inverse_frequencies, name + ".inverse_frequencies"));
  RotationRules rules;
  rules.pairing = static_cast<Pairing>(rotation.pairing);
  rules.inverse_frequencies.assign(rotation.inverse_frequencies,
                                   rotation.inverse_frequencies + rotation.frequency_count);
  rules.scale = rotation.scale == 0.0 ? 1.0 : rotation.scale;
  return rules;
}

StatusOr<LayerRules> read_layer(const foldkv_layer& layer, const std::string& name) {
  if (layer.head_size < 1 || layer.head_size > kLargestHeadSize) {
    return argument_error(name + ".head_size",
                          absl::StrCat("is ", layer.head_size, ", expected 1 to ", kLargestHeadSize));
  }
  LayerRules rules;
  rules.query_heads = layer.query_heads;
  rules.kv_heads = layer.kv_heads;
  rules.head_size = layer.head_size;
  if (layer.rotation != nullptr) {
    FOLDKV_ASSIGN_OR_RETURN(rules.rotation, read_rotation(layer.rotation, name + ".rotation"));
  }
  rules.window = layer.window;
  rules.attention_scale =
      layer.attention_scale == 0.0 ? 1.0 / std::sqrt(static_cast<double>(layer.head_size)) : layer.attention_scale;
  rules.soft_cap = layer.soft_cap;
  if (layer.query_norm != nullptr) rules.query_norm.assign(layer.query_norm, layer.query_norm + layer.head_size);
  if (layer.key_norm != nullptr) rules.key_norm.assign(layer.key_norm, layer.key_norm + layer.head_size);
  rules.norm_epsilon = layer.norm_epsilon == 0.0 ? 1e-6 : layer.norm_epsilon;
  return rules;
}

StatusOr<std::shared_ptr<Model>> create_model(const foldkv_model_options* source) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_model_options options, read_struct(source, "options"));
  if (options.layer_count < 1 || options.layer_count > kLargestLayerCount) {
    return argument_error("options.layer_count",
                          absl::StrCat("is ", options.layer_count, ", expected 1 to ", kLargestLayerCount));
  }
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<foldkv_layer> layers,
                          read_structs(options.layers, options.layer_count, "options.layers"));
  ModelDescription description;
  for (size_t index = 0; index < layers.size(); ++index) {
    FOLDKV_ASSIGN_OR_RETURN(LayerRules rules, read_layer(layers[index], absl::StrCat("layers[", index, "]")));
    description.layers.push_back(std::move(rules));
  }
  description.hidden_size = options.hidden_size;
  if (options.name != nullptr) description.name = options.name;
  return Model::create(std::move(description));
}

StatusOr<LayerWeights> read_weights(const foldkv_layer_weights& source, const Model& model, int64_t layer) {
  const LayerRules& rules = model.layer(layer);
  const int64_t hidden = model.hidden_size();
  LayerWeights weights;
  FOLDKV_ASSIGN_OR_RETURN(weights.query, read_tensor(source.query, {"weights.query", {rules.query_width(), hidden}}));
  FOLDKV_ASSIGN_OR_RETURN(weights.key, read_tensor(source.key, {"weights.key", {rules.key_width(), hidden}}));
  FOLDKV_ASSIGN_OR_RETURN(weights.value, read_tensor(source.value, {"weights.value", {rules.key_width(), hidden}}));
  FOLDKV_ASSIGN_OR_RETURN(
      weights.output, read_optional_tensor(source.output, {"weights.output", {hidden, rules.query_width()}}));
  FOLDKV_ASSIGN_OR_RETURN(weights.query_bias,
                          read_optional_tensor(source.query_bias, {"weights.query_bias", {rules.query_width()}}));
  FOLDKV_ASSIGN_OR_RETURN(weights.key_bias,
                          read_optional_tensor(source.key_bias, {"weights.key_bias", {rules.key_width()}}));
  FOLDKV_ASSIGN_OR_RETURN(weights.value_bias,
                          read_optional_tensor(source.value_bias, {"weights.value_bias", {rules.key_width()}}));
  FOLDKV_ASSIGN_OR_RETURN(weights.output_bias,
                          read_optional_tensor(source.output_bias, {"weights.output_bias", {hidden}}));
  return weights;
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_model_create(const foldkv_model_options* options, foldkv_model** model, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(model, "model"));
    FOLDKV_ASSIGN_OR_RETURN(std::shared_ptr<foldkv::Model> created, foldkv::abi::create_model(options));
    *model = new foldkv_model{std::move(created)};
    return absl::OkStatus();
  });
}

void foldkv_model_release(foldkv_model* model) { delete model; }

foldkv_status foldkv_model_bind_weights(foldkv_model* model, int32_t layer, const foldkv_layer_weights* weights,
                                        foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(model, "model"));
    foldkv::Model& object = *model->object;
    if (layer < 0 || layer >= object.layer_count()) {
      return foldkv::argument_error("layer",
                                    absl::StrCat("is ", layer, ", expected 0 to ", object.layer_count() - 1));
    }
    if (object.hidden_size() < 1) {
      return foldkv::with_argument(foldkv::state_error("the model was created with hidden_size 0"), "model");
    }
    FOLDKV_ASSIGN_OR_RETURN(const foldkv_layer_weights source, foldkv::abi::read_struct(weights, "weights"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::LayerWeights views, foldkv::abi::read_weights(source, object, layer));
    return object.bind_weights(layer, views);
  });
}

uint64_t foldkv_model_fingerprint(const foldkv_model* model) {
  return model == nullptr ? 0 : model->object->fingerprint();
}

}  // extern "C"
