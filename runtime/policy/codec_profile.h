#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// Codecs that need no calibration, as profiles: sequences take them like any other. Layers with a window stay exact.
enum class CodecName : int32_t {
  // Keys and values of each token, KV head by KV head, with one symmetric scale.
  kInteger = 1,
  // KIVI (methods.md section 5): keys per channel over 32 tokens, values per token over 32 channels, asymmetric. Keys are
  // quantized before rotation, as all of this cache's keys.
  kKivi = 2,
  // xKV (section 6): the layers of a group share the left singular vectors of their keys, and of their values.
  kXkv = 3,
  // MiniCache (section 6): neighbouring layers share directions, head by head, and keep their norms.
  kMiniCache = 4,
  // KVSharer (section 6): a layer reads another layer's keys and values instead of its own.
  kKvSharer = 5,
};

struct CodecWish {
  CodecName codec = CodecName::kInteger;
  int32_t bits = 0;              // 0: 8 for integers, 4 for KIVI, 16 (halves) for xKV
  int32_t layers_per_group = 0;  // xKV. 0: 4
  int32_t key_rank = 0;          // xKV. 0: 3/32 of the group's stacked key width, as 384 of 4,096
  int32_t value_rank = 0;        // 0: 9/64, as 576 of 4,096
  double interpolation = 0.6;    // MiniCache: 0 is the direction of the lower layer of a pair
  double retained = 0.05;        // MiniCache: share of the tokens of a page and head, rounded up to whole ones
  int32_t first_layer = 0;       // MiniCache: the first that is merged. 0: half of the layers
  std::vector<int32_t> sources;  // KVSharer: of each layer an earlier one or itself; chains are followed
  std::string made_by;
};

// Argument errors name the field.
[[nodiscard]] StatusOr<Profile> make_codec_profile(const Model& model, const CodecWish& wish);

}  // namespace foldkv
