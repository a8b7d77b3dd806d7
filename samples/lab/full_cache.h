#pragma once

#include <cstdint>
#include <vector>

#include "samples/lab/aligned_buffer.h"
#include "samples/lab/model.h"

namespace foldkv_lab {

enum class CacheFormat { kF32, kF16 };

// Rotated keys and values of all tokens, uncompressed: the yardstick. One layer and KV head is a run of blocks of 64
// tokens, laid out so that both products of attention read memory in order:
//
//   key block    [head_size, 64 tokens]         scores = queries * block
//   value block  [64 tokens, padded head size]  context = probabilities * block
class FullCache {
 public:
  static constexpr int64_t kBlockTokens = 64;

  // Memory for `capacity` tokens is reserved, and used only as tokens arrive.
  FullCache(const ModelShape& shape, CacheFormat format, int64_t capacity);

  [[nodiscard]] int64_t capacity() const { return blocks_ * kBlockTokens; }
  [[nodiscard]] CacheFormat format() const { return format_; }
  // Rows of values are filled up with zeros to whole vectors.
  [[nodiscard]] int64_t padded_head_size() const { return padded_head_size_; }
  // Numbers in the larger of the two kinds of blocks.
  [[nodiscard]] int64_t block_numbers() const { return kBlockTokens * padded_head_size_; }
  // Of `tokens` tokens over all layers.
  [[nodiscard]] int64_t bytes(int64_t tokens) const;

  // key and value: one head, [head_size]. Blocks must be filled from their first token on.
  void put(int64_t layer, int64_t kv_head, int64_t token, const float* key, const float* value);

  // A block as f32: in the cache itself, or widened into scratch [block_numbers()].
  [[nodiscard]] const float* key_block(int64_t layer, int64_t kv_head, int64_t block, float* scratch) const;
  [[nodiscard]] const float* value_block(int64_t layer, int64_t kv_head, int64_t block, float* scratch) const;

 private:
  template <typename Number>
  struct Side {
    std::vector<AlignedBuffer<Number>> keys;  // one for each layer and KV head
    std::vector<AlignedBuffer<Number>> values;
  };

  [[nodiscard]] size_t head_index(int64_t layer, int64_t kv_head) const {
    return static_cast<size_t>(layer * kv_heads_ + kv_head);
  }
  template <typename Number>
  void reserve(Side<Number>* side, int64_t heads);
  template <typename Number, typename Convert>
  void put_numbers(Side<Number>* side, size_t head, int64_t token, const float* key, const float* value,
                   const Convert& convert);

  int64_t layers_;
  int64_t kv_heads_;
  int64_t head_size_;
  int64_t padded_head_size_;
  int64_t blocks_;
  CacheFormat format_;
  Side<float> single_;   // kF32
  Side<uint16_t> half_;  // kF16
};

}  // namespace foldkv_lab
