#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace foldkv_lab {

// The attention part of every layer, with the cache behind it. The decoder walks the layers and knows nothing else of
// the cache, so that a full cache and FoldKV are two implementations under the same walk.
//
// A step is: begin_step, attend for layer 0, 1, 2 ..., commit_step. A step that is not committed is rolled back, by
// roll_back_step or by the next begin_step.
class Attention {
 public:
  virtual ~Attention() = default;

  // Tokens take the positions after those that the cache holds. prompt_continues: more of the same prompt follows, so
  // that a cache that compresses prompts shall wait.
  [[nodiscard]] virtual absl::Status begin_step(int64_t tokens, bool prompt_continues) = 0;
  // normed [tokens, hidden]: hidden states after the layer's input norm. output [tokens, hidden]: attention output
  // after the output projection, to be added to the residual stream.
  [[nodiscard]] virtual absl::Status attend(int64_t layer, const float* normed, float* output) = 0;
  [[nodiscard]] virtual absl::Status commit_step() = 0;
  virtual void roll_back_step() = 0;

  // Tokens in the cache.
  [[nodiscard]] virtual int64_t token_count() const = 0;
  // Forgets all tokens.
  [[nodiscard]] virtual absl::Status clear() = 0;
};

}  // namespace foldkv_lab
