#include <limits>

#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

// A change to the good options that must be refused, naming the argument.
template <typename Change>
void check_layer_refused(const Api& api, const std::string& argument, const Change& change) {
  std::vector<foldkv_layer> layers = api.layers;
  change(layers[1]);
  foldkv_model_options options = api.model_options();
  options.layers = layers.data();
  foldkv_model* model = nullptr;
  check_refused(FOLDKV_E_ARGUMENT, argument,
                [&](foldkv_error* error) { return foldkv_model_create(&options, &model, error); });
  CHECK(model == nullptr);
}

TEST_CASE("every field of a layer is checked and named") {
  const Api api;
  const double nan = std::nan("");
  check_layer_refused(api, "layers[1].query_heads", [](foldkv_layer& layer) { layer.query_heads = 0; });
  check_layer_refused(api, "layers[1].query_heads", [](foldkv_layer& layer) { layer.query_heads = 5; });
  check_layer_refused(api, "layers[1].kv_heads", [](foldkv_layer& layer) { layer.kv_heads = -1; });
  check_layer_refused(api, "layers[1].head_size", [](foldkv_layer& layer) { layer.head_size = 0; });
  check_layer_refused(api, "layers[1].head_size", [](foldkv_layer& layer) { layer.head_size = 513; });
  check_layer_refused(api, "layers[1].window", [](foldkv_layer& layer) { layer.window = -1; });
  check_layer_refused(api, "layers[1].soft_cap", [](foldkv_layer& layer) { layer.soft_cap = -1.0; });
  check_layer_refused(api, "layers[1].soft_cap", [=](foldkv_layer& layer) { layer.soft_cap = nan; });
  check_layer_refused(api, "layers[1].attention_scale", [=](foldkv_layer& layer) { layer.attention_scale = nan; });
  check_layer_refused(api, "layers[1].norm_epsilon", [](foldkv_layer& layer) { layer.norm_epsilon = -1.0; });
}

TEST_CASE("every field of a rotation is checked and named") {
  const Api api;
  const auto refused = [&](const std::string& argument, const auto& change) {
    foldkv_rotation rotation = api.rotation;
    change(rotation);
    check_layer_refused(api, argument, [&](foldkv_layer& layer) { layer.rotation = &rotation; });
  };
  refused("layers[1].rotation.pairing", [](foldkv_rotation& rotation) { rotation.pairing = 0; });
  refused("layers[1].rotation.pairing", [](foldkv_rotation& rotation) { rotation.pairing = 3; });
  refused("layers[1].rotation.frequency_count", [](foldkv_rotation& rotation) { rotation.frequency_count = 0; });
  refused("layers[1].rotation.inverse_frequencies",
          [](foldkv_rotation& rotation) { rotation.inverse_frequencies = nullptr; });
  refused("layers[1].rotation.struct_size", [](foldkv_rotation& rotation) { rotation.struct_size = 1; });
  refused("layers[1].rotation.scale", [](foldkv_rotation& rotation) { rotation.scale = INFINITY; });
  const double frequencies[5] = {1, 1, 1, 1, 1};
  refused("layers[1].rotation.frequency_count", [&](foldkv_rotation& rotation) {
    rotation.inverse_frequencies = frequencies;
    rotation.frequency_count = 5;
  });
  const double infinite[1] = {INFINITY};
  refused("layers[1].rotation.inverse_frequencies[0]", [&](foldkv_rotation& rotation) {
    rotation.inverse_frequencies = infinite;
    rotation.frequency_count = 1;
  });
}

TEST_CASE("model options are checked") {
  const Api api;
  foldkv_model* model = nullptr;
  const auto refused = [&](const std::string& argument, const auto& change) {
    foldkv_model_options options = api.model_options();
    change(options);
    check_refused(FOLDKV_E_ARGUMENT, argument,
                  [&](foldkv_error* error) { return foldkv_model_create(&options, &model, error); });
  };
  refused("options.layer_count", [](foldkv_model_options& options) { options.layer_count = 0; });
  refused("options.layer_count", [](foldkv_model_options& options) { options.layer_count = 4097; });
  refused("options.layers", [](foldkv_model_options& options) { options.layers = nullptr; });
  refused("hidden_size", [](foldkv_model_options& options) { options.hidden_size = -1; });
}

TEST_CASE("the fingerprint follows the geometry, not the name or the weights") {
  const Api api;
  const auto fingerprint_with = [&](const auto& change) {
    std::vector<foldkv_layer> layers = api.layers;
    foldkv_rotation rotation = api.rotation;
    for (foldkv_layer& layer : layers) layer.rotation = &rotation;
    foldkv_model_options options = api.model_options();
    options.layers = layers.data();
    change(options, layers, rotation);
    foldkv_model* model = nullptr;
    REQUIRE(foldkv_model_create(&options, &model, nullptr) == FOLDKV_OK);
    const uint64_t fingerprint = foldkv_model_fingerprint(model);
    foldkv_model_release(model);
    return fingerprint;
  };
  const uint64_t own = foldkv_model_fingerprint(api.model);
  CHECK(foldkv_model_fingerprint(nullptr) == 0);
  CHECK(fingerprint_with([](auto&, auto&, auto&) {}) == own);
  CHECK(fingerprint_with([](auto& options, auto&, auto&) { options.name = "other"; }) == own);
  CHECK(fingerprint_with([](auto&, auto& layers, auto&) { layers[0].window = 5; }) != own);
  CHECK(fingerprint_with([](auto&, auto& layers, auto&) { layers[1].soft_cap = 5; }) != own);
  CHECK(fingerprint_with([](auto&, auto&, auto& rotation) { rotation.pairing = 2; }) != own);
  CHECK(fingerprint_with([](auto&, auto&, auto& rotation) { rotation.scale = 1.1; }) != own);
  CHECK(fingerprint_with([](auto& options, auto&, auto&) { options.layer_count = 1; }) != own);
}

TEST_CASE("weights must fit the geometry and come before the first sequence") {
  Api api;
  foldkv_model* model = nullptr;
  const foldkv_model_options options = api.model_options();
  REQUIRE(foldkv_model_create(&options, &model, nullptr) == FOLDKV_OK);
  const auto refused = [&](const std::string& argument, const auto& change) {
    foldkv_layer_weights weights = api.layer_weights(9);
    change(weights);
    check_refused(FOLDKV_E_ARGUMENT, argument,
                  [&](foldkv_error* error) { return foldkv_model_bind_weights(model, 0, &weights, error); });
  };
  refused("weights.query.data", [](auto& weights) { weights.query.data = nullptr; });
  refused("weights.key.shape", [](auto& weights) { weights.key.shape[0] = 7; });
  refused("weights.value.shape", [](auto& weights) { weights.value.shape[1] = 7; });
  refused("weights.output.rank", [](auto& weights) { weights.output.rank = 5; });
  refused("weights.query.dtype", [](auto& weights) { weights.query.dtype = 9; });
  refused("weights.query.device", [](auto& weights) { weights.query.device = FOLDKV_DEVICE; });
  refused("weights.query.strides", [](auto& weights) {
    weights.query.strides[0] = 1;
    weights.query.strides[1] = 32;
  });
  refused("weights.key_bias.shape", [](auto& weights) {
    weights.key_bias = weights.query;
    weights.key_bias.rank = 1;
    weights.key_bias.shape[0] = 3;
  });
  foldkv_layer_weights good = api.layer_weights(9);
  for (int32_t layer : {-1, 2}) {
    check_refused(FOLDKV_E_ARGUMENT, "layer",
                  [&](foldkv_error* error) { return foldkv_model_bind_weights(model, layer, &good, error); });
  }
  check_refused(FOLDKV_E_ARGUMENT, "weights",
                [&](foldkv_error* error) { return foldkv_model_bind_weights(model, 0, nullptr, error); });
  CHECK(foldkv_model_bind_weights(model, 0, &good, nullptr) == FOLDKV_OK);
  foldkv_model_release(model);
  foldkv_error error = sized<foldkv_error>();
  CHECK(foldkv_model_bind_weights(api.model, 0, &good, &error) == FOLDKV_E_STATE);
}

}  // namespace
}  // namespace foldkv::test
