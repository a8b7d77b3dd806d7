#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "foldkv/foldkv.h"

// A small world behind the C functions: a runtime, a model of 2 layers with weights, calibrated profile, a sequence.
namespace foldkv::test {

template <typename Struct>
[[nodiscard]] Struct sized() {
  Struct value{};
  value.struct_size = sizeof(Struct);
  return value;
}

inline constexpr int32_t kLayers = 2;
inline constexpr int32_t kQueryHeads = 4;
inline constexpr int32_t kKvHeads = 2;
inline constexpr int32_t kHeadSize = 8;
inline constexpr int64_t kHidden = 12;

// Deterministic numbers between -1 and 1.
[[nodiscard]] inline std::vector<float> some_numbers(int64_t count, uint32_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint32_t state = seed * 2654435761U + 1U;
  for (float& number : numbers) {
    state = state * 1664525U + 1013904223U;
    number = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return numbers;
}

[[nodiscard]] inline foldkv_tensor tensor_of(std::vector<float>& data, std::vector<int64_t> shape) {
  foldkv_tensor tensor{};
  tensor.data = data.data();
  tensor.dtype = FOLDKV_F32;
  tensor.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.shape);
  return tensor;
}

class Api {
 public:
  explicit Api(const char* backend = "cpu") {
    auto options = sized<foldkv_runtime_options>();
    options.backend = backend;
    options.budget_bytes = 64u << 20;
    options.threads = 2;
    REQUIRE(foldkv_runtime_create(&options, &runtime, nullptr) == FOLDKV_OK);
    make_model();
    make_profile();
    REQUIRE(foldkv_sequence_create(runtime, model, profile, nullptr, &sequence, nullptr) == FOLDKV_OK);
  }
  ~Api() {
    // In no special order: handles keep alive what they need.
    foldkv_runtime_release(runtime);
    foldkv_profile_release(profile);
    foldkv_model_release(model);
    foldkv_sequence_release(sequence);
  }
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  [[nodiscard]] foldkv_model_options model_options() const {
    auto options = sized<foldkv_model_options>();
    options.layer_count = kLayers;
    options.layers = layers.data();
    options.hidden_size = kHidden;
    options.name = "small";
    return options;
  }

  // One step of that many tokens through the sequence.
  void feed(int64_t tokens, uint32_t seed) {
    auto feed = sized<foldkv_feed>();
    feed.sequence = sequence;
    feed.token_count = tokens;
    foldkv_step* step = nullptr;
    foldkv_error error = sized<foldkv_error>();
    REQUIRE_MESSAGE(foldkv_step_begin(runtime, &feed, 1, nullptr, &step, &error) == FOLDKV_OK, error.message);
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      std::vector<float> hidden = some_numbers(tokens * kHidden, seed + static_cast<uint32_t>(layer));
      std::vector<float> output(static_cast<size_t>(tokens * kQueryHeads * kHeadSize));
      auto attend = sized<foldkv_attend>();
      attend.hidden = tensor_of(hidden, {tokens, kHidden});
      attend.output = tensor_of(output, {tokens, kQueryHeads, kHeadSize});
      REQUIRE_MESSAGE(foldkv_step_attend(step, layer, &attend, &error) == FOLDKV_OK, error.message);
    }
    REQUIRE_MESSAGE(foldkv_step_commit(step, &error) == FOLDKV_OK, error.message);
    foldkv_step_release(step);
  }

  foldkv_runtime* runtime = nullptr;
  foldkv_model* model = nullptr;
  foldkv_profile* profile = nullptr;
  foldkv_sequence* sequence = nullptr;
  std::vector<double> frequencies = {1.0, 0.1, 0.01, 0.001};
  foldkv_rotation rotation = sized<foldkv_rotation>();
  std::vector<foldkv_layer> layers;
  std::vector<std::vector<float>> weights;

 private:
  void make_model() {
    rotation.pairing = FOLDKV_PAIRING_HALF_SPLIT;
    rotation.inverse_frequencies = frequencies.data();
    rotation.frequency_count = 4;
    auto layer = sized<foldkv_layer>();
    layer.query_heads = kQueryHeads;
    layer.kv_heads = kKvHeads;
    layer.head_size = kHeadSize;
    layer.rotation = &rotation;
    layers.assign(kLayers, layer);
    const foldkv_model_options options = model_options();
    REQUIRE(foldkv_model_create(&options, &model, nullptr) == FOLDKV_OK);
    for (int32_t index = 0; index < kLayers; ++index) {
      const foldkv_layer_weights bound = layer_weights(static_cast<uint32_t>(index));
      REQUIRE(foldkv_model_bind_weights(model, index, &bound, nullptr) == FOLDKV_OK);
    }
  }

 public:
  [[nodiscard]] foldkv_layer_weights layer_weights(uint32_t seed) {
    const auto matrix = [&](int64_t rows, int64_t columns, uint32_t part) {
      weights.push_back(some_numbers(rows * columns, seed * 10 + part));
      return tensor_of(weights.back(), {rows, columns});
    };
    auto bound = sized<foldkv_layer_weights>();
    bound.query = matrix(kQueryHeads * kHeadSize, kHidden, 1);
    bound.key = matrix(kKvHeads * kHeadSize, kHidden, 2);
    bound.value = matrix(kKvHeads * kHeadSize, kHidden, 3);
    bound.output = matrix(kHidden, kQueryHeads * kHeadSize, 4);
    return bound;
  }

 private:
  void make_profile() {
    auto options = sized<foldkv_calibrator_options>();
    options.layers_per_group = 2;
    foldkv_calibrator* calibrator = nullptr;
    foldkv_error error = sized<foldkv_error>();
    REQUIRE_MESSAGE(foldkv_calibrator_create(runtime, model, &options, &calibrator, &error) == FOLDKV_OK,
                    error.message);
    const int64_t tokens = 200;
    std::vector<std::vector<float>> rows;
    std::vector<foldkv_tensor> keys;
    std::vector<foldkv_tensor> values;
    rows.reserve(2 * kLayers);
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      for (auto* list : {&keys, &values}) {
        rows.push_back(some_numbers(tokens * kKvHeads * kHeadSize, static_cast<uint32_t>(70 + rows.size())));
        list->push_back(tensor_of(rows.back(), {tokens, kKvHeads, kHeadSize}));
      }
    }
    REQUIRE_MESSAGE(
        foldkv_calibrator_observe(calibrator, keys.data(), values.data(), kLayers, 0, &error) == FOLDKV_OK,
        error.message);
    REQUIRE_MESSAGE(foldkv_calibrator_solve(calibrator, nullptr, &profile, &error) == FOLDKV_OK, error.message);
    foldkv_calibrator_release(calibrator);
  }
};

// Runs a call that must fail: the code, the argument it names, and that a NULL error is taken too.
template <typename Call>
void check_refused(foldkv_status expected, const std::string& argument, const Call& call) {
  foldkv_error error = sized<foldkv_error>();
  CHECK(call(&error) == expected);
  CHECK(error.status == expected);
  CHECK(std::string(error.argument) == argument);
  CHECK(std::strlen(error.message) > 0);
  CHECK(call(nullptr) == expected);
}

}  // namespace foldkv::test
