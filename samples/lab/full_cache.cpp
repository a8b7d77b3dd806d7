#include "samples/lab/full_cache.h"

#include <algorithm>

#include "samples/lab/half.h"
#include "samples/lab/vector_kernels.h"

namespace foldkv_lab {

FullCache::FullCache(const ModelShape& shape, CacheFormat format, int64_t capacity)
    : layers_(shape.layer_count),
      kv_heads_(shape.kv_heads),
      head_size_(shape.head_size),
      padded_head_size_((shape.head_size + 15) / 16 * 16),
      blocks_((capacity + kBlockTokens - 1) / kBlockTokens),
      format_(format) {
  const int64_t heads = layers_ * kv_heads_;
  if (format == CacheFormat::kF32) {
    reserve(&single_, heads);
  } else {
    reserve(&half_, heads);
  }
}

template <typename Number>
void FullCache::reserve(Side<Number>* side, int64_t heads) {
  for (int64_t head = 0; head < heads; ++head) {
    side->keys.emplace_back(blocks_ * kBlockTokens * head_size_);
    side->values.emplace_back(blocks_ * kBlockTokens * padded_head_size_);
  }
}

int64_t FullCache::bytes(int64_t tokens) const {
  const int64_t number_bytes = format_ == CacheFormat::kF32 ? 4 : 2;
  return layers_ * kv_heads_ * tokens * (head_size_ + padded_head_size_) * number_bytes;
}

template <typename Number, typename Convert>
void FullCache::put_numbers(Side<Number>* side, size_t head, int64_t token, const float* key, const float* value,
                            const Convert& convert) {
  const int64_t block = token / kBlockTokens;
  const int64_t slot = token % kBlockTokens;
  Number* keys = side->keys[head].data() + block * kBlockTokens * head_size_;
  Number* values = side->values[head].data() + block * kBlockTokens * padded_head_size_;
  if (slot == 0) {  // tokens to come count as zero until they arrive
    std::fill_n(keys, kBlockTokens * head_size_, Number{0});
    std::fill_n(values, kBlockTokens * padded_head_size_, Number{0});
  }
  for (int64_t i = 0; i < head_size_; ++i) {
    keys[i * kBlockTokens + slot] = convert(key[i]);
    values[slot * padded_head_size_ + i] = convert(value[i]);
  }
}

void FullCache::put(int64_t layer, int64_t kv_head, int64_t token, const float* key, const float* value) {
  const size_t head = head_index(layer, kv_head);
  if (format_ == CacheFormat::kF32) {
    put_numbers(&single_, head, token, key, value, [](float number) { return number; });
  } else {
    put_numbers(&half_, head, token, key, value, float_to_half);
  }
}

const float* FullCache::key_block(int64_t layer, int64_t kv_head, int64_t block, float* scratch) const {
  const int64_t numbers = kBlockTokens * head_size_;
  const size_t head = head_index(layer, kv_head);
  if (format_ == CacheFormat::kF32) return single_.keys[head].data() + block * numbers;
  vector_kernels().widen_halves(half_.keys[head].data() + block * numbers, scratch, numbers);
  return scratch;
}

const float* FullCache::value_block(int64_t layer, int64_t kv_head, int64_t block, float* scratch) const {
  const int64_t numbers = kBlockTokens * padded_head_size_;
  const size_t head = head_index(layer, kv_head);
  if (format_ == CacheFormat::kF32) return single_.values[head].data() + block * numbers;
  vector_kernels().widen_halves(half_.values[head].data() + block * numbers, scratch, numbers);
  return scratch;
}

}  // namespace foldkv_lab
