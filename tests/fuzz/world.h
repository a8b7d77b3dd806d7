#pragma once

#include <cstdint>
#include <vector>

#include "foldkv/foldkv.h"

// What the files of the corpus were made for: a runtime, and a model of four small layers.
namespace foldkv::fuzz {

inline constexpr int32_t kLayers = 4;
inline constexpr int32_t kQueryHeads = 4;
inline constexpr int32_t kKvHeads = 2;
inline constexpr int32_t kHeadSize = 4;
inline constexpr int32_t kKeyWidth = kKvHeads * kHeadSize;

template <typename Struct>
[[nodiscard]] Struct sized() {
  Struct value{};
  value.struct_size = sizeof(Struct);
  return value;
}

// Made on first use and never released: one for all inputs.
[[nodiscard]] foldkv_runtime* runtime();
[[nodiscard]] foldkv_model* model();

// One step of so many tokens of noise; false: some call refused it.
[[nodiscard]] bool feed(foldkv_sequence* sequence, int64_t tokens, uint32_t flags = 0);

// Profiles of codecs for the model, made on first use: those that the snapshots of the corpus belong to. index from 0
// to kSnapshotProfiles - 1; the first is none.
inline constexpr int32_t kSnapshotProfiles = 5;
[[nodiscard]] foldkv_profile* snapshot_profile(int32_t index);

// Between -1 and 1, the same for the same seed.
[[nodiscard]] std::vector<float> some_numbers(int64_t count, uint64_t seed);
// View of [rows, heads, kHeadSize].
[[nodiscard]] foldkv_tensor rows_of(std::vector<float>& numbers, int64_t rows, int32_t heads);

}  // namespace foldkv::fuzz
