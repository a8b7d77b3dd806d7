#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "samples/lab/aligned_buffer.h"
#include "samples/lab/model.h"

namespace foldkv_lab {

// The first tokens of a sample, at positions 0 to tokens - 1: their keys before rotation (after a bias) and values.
struct CachedContext {
  int64_t tokens = 0;
  std::vector<FloatBuffer> keys;  // for each layer [tokens, kv_width]
  std::vector<FloatBuffer> values;
};

// Refuses a context that is not of this model or holds numbers that are not finite.
[[nodiscard]] absl::Status check_context(const Model& model, const CachedContext& context);

}  // namespace foldkv_lab
