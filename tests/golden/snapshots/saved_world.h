#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "foldkv/foldkv.hpp"
#include "nlohmann/json.hpp"

// The world that the golden snapshots were saved in: small, and the same on every machine. Frozen, as the files are.
namespace foldkv::test {

inline constexpr int32_t kSavedLayers = 2;
inline constexpr int32_t kSavedQueryHeads = 2;
inline constexpr int32_t kSavedKvHeads = 1;
inline constexpr int32_t kSavedHeadSize = 8;

[[nodiscard]] inline std::vector<float> saved_numbers(int64_t count, uint32_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint32_t state = seed * 2654435761U + 1U;
  for (float& number : numbers) {
    state = state * 1664525U + 1013904223U;
    number = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return numbers;
}

template <class T>
[[nodiscard]] T value_or_stop(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", result.error().argument, result.error().message);
    std::abort();
  }
  return *std::move(result);
}

[[nodiscard]] inline Runtime saved_runtime(const char* backend) {
  return value_or_stop(Runtime::create({.backend = backend, .budget_bytes = 8u << 20, .threads = 1}));
}

[[nodiscard]] inline Model saved_model() {
  const double frequencies[] = {1.0, 0.1, 0.01, 0.001};
  auto rotation = init<foldkv_rotation>();
  rotation.pairing = FOLDKV_PAIRING_HALF_SPLIT;
  rotation.inverse_frequencies = frequencies;
  rotation.frequency_count = 4;
  auto layer = init<foldkv_layer>();
  layer.query_heads = kSavedQueryHeads;
  layer.kv_heads = kSavedKvHeads;
  layer.head_size = kSavedHeadSize;
  layer.rotation = &rotation;
  const std::vector<foldkv_layer> layers(kSavedLayers, layer);
  return value_or_stop(
      Model::create({.layer_count = kSavedLayers, .layers = layers.data(), .name = "golden snapshots"}));
}

// What a sequence tells of itself: positions, and rows of every layer, head and side.
[[nodiscard]] inline nlohmann::json told_by(const Sequence& sequence) {
  nlohmann::json told;
  told["next_position"] = value_or_stop(sequence.stats()).next_position;
  told["tokens"] = value_or_stop(sequence.stats()).tokens;
  for (int32_t layer = 0; layer < kSavedLayers; ++layer) {
    nlohmann::json held;
    held["positions"] = value_or_stop(sequence.kept_positions(layer, 0));
    const auto tokens = static_cast<int64_t>(held["positions"].size());
    for (const int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) {
      std::vector<float> rows(static_cast<size_t>(tokens * kSavedHeadSize));
      const foldkv_tensor output = tensor(rows.data(), {tokens, 1, kSavedHeadSize});
      if (!sequence.rebuild({.layer = layer, .side = side, .one_head = 1}, output)) std::abort();
      held[side == FOLDKV_KEYS ? "keys" : "values"] = rows;
    }
    told["layers"].push_back(held);
  }
  return told;
}

}  // namespace foldkv::test
