#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace foldkv_lab {

// A parsed model file of llama2.c (the first format, without magic number): seven 32-bit numbers, then all weights
// in f32. The input counts as hostile; the views point into the parsed bytes, at any alignment.
struct Llama2cFile {
  int64_t hidden_size = 0;
  int64_t feed_forward_size = 0;
  int64_t layer_count = 0;
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t vocabulary_size = 0;
  int64_t context_length = 0;

  // f32 numbers; those of all layers stand one after the other.
  std::span<const std::byte> embedding;          // [vocabulary, hidden]
  std::span<const std::byte> attention_norm;     // [layers, hidden]
  std::span<const std::byte> query;              // [layers, hidden, hidden]
  std::span<const std::byte> key;                // [layers, kv width, hidden]
  std::span<const std::byte> value;              // [layers, kv width, hidden]
  std::span<const std::byte> attention_output;   // [layers, hidden, hidden]
  std::span<const std::byte> feed_forward_norm;  // [layers, hidden]
  std::span<const std::byte> gate;               // [layers, feed forward, hidden]
  std::span<const std::byte> down;               // [layers, hidden, feed forward]
  std::span<const std::byte> up;                 // [layers, feed forward, hidden]
  std::span<const std::byte> final_norm;         // [hidden]
  std::span<const std::byte> classifier;         // [vocabulary, hidden]; empty: the embedding serves

  [[nodiscard]] int64_t head_size() const { return hidden_size / query_heads; }

  [[nodiscard]] static absl::StatusOr<Llama2cFile> parse(std::span<const std::byte> bytes);
};

}  // namespace foldkv_lab
