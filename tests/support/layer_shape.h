#pragma once

#include <cstdint>
#include <vector>

#include "foldkv/foldkv.h"

namespace foldkv::test {

// What a layer of a model without weights is.
struct LayerShape {
  int32_t query_heads = 4;
  int32_t kv_heads = 2;
  int32_t head_size = 64;
  int64_t window = 0;
  double soft_cap = 0.0;
  double attention_scale = 0.0;     // 0: 1 / sqrt(head_size)
  std::vector<double> frequencies;  // empty: the layer does not rotate
  int32_t pairing = FOLDKV_PAIRING_HALF_SPLIT;
  double rotation_scale = 0.0;  // 0: 1

  [[nodiscard]] int64_t query_width() const { return int64_t{query_heads} * head_size; }
  [[nodiscard]] int64_t key_width() const { return int64_t{kv_heads} * head_size; }
};

}  // namespace foldkv::test
