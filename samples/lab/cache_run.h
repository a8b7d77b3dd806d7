#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "samples/lab/decoder.h"

namespace foldkv_lab {

// Texts through one cache, as every figure wants them: a beginning is fed exactly, and what compresses compresses at
// its end; what follows reads this cache.
class CacheRun {
 public:
  // All three must outlive this object.
  CacheRun(const Model& model, Attention& attention, ThreadPool& threads)
      : attention_(attention), decoder_(model, attention, threads) {}

  // Forgets all tokens and feeds these, which need no logits.
  [[nodiscard]] absl::Status begin(std::span<const Token> tokens);
  // Feeds tokens in steps of `step`: logits [tokens, vocabulary], in place of what stood there.
  [[nodiscard]] absl::Status feed(std::span<const Token> tokens, int64_t step, std::vector<float>* logits);
  // Feeds tokens in one step: the logits of the last one.
  [[nodiscard]] absl::Status ask(std::span<const Token> tokens, std::vector<float>* logits);
  [[nodiscard]] absl::Status clear() { return attention_.clear(); }

 private:
  Attention& attention_;
  Decoder decoder_;
  std::vector<float> step_logits_;
};

}  // namespace foldkv_lab
