#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "samples/lab/aligned_buffer.h"
#include "samples/lab/attention.h"
#include "samples/lab/model.h"
#include "samples/lab/thread_pool.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// The walk through a decoder: embedding, then for each layer attention and feed-forward on the residual stream, then
// logits. What is behind attention is the caller's choice.
class Decoder {
 public:
  static constexpr int64_t kDefaultChunk = 256;

  // All three must outlive this object.
  Decoder(const Model& model, Attention& attention, ThreadPool& threads);

  // Feeds tokens in steps of at most `chunk`. Logits come from the last `logit_rows` tokens:
  // logits [logit_rows, vocabulary]. On failure the step that failed is rolled back, those before it stand.
  // progress (may do nothing) is told the tokens fed so far after each step.
  [[nodiscard]] absl::Status feed(
      std::span<const Token> tokens, int64_t logit_rows, std::vector<float>* logits, int64_t chunk = kDefaultChunk,
      absl::FunctionRef<void(int64_t)> progress = [](int64_t) {});

  // Of the last token fed, after the final norm; logits must have been asked for.
  [[nodiscard]] const std::vector<float>& final_hidden_state() const { return final_hidden_state_; }

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] Attention& attention() { return attention_; }

 private:
  [[nodiscard]] absl::Status run_step(std::span<const Token> tokens, bool prompt_continues);
  [[nodiscard]] absl::Status run_layers(std::span<const Token> tokens);
  void feed_forward(const ModelLayer& layer, int64_t rows);
  void normalize(const std::vector<float>& weight, int64_t rows);
  void compute_logits(int64_t first_row, int64_t rows, float* logits);

  const Model& model_;
  Attention& attention_;
  ThreadPool& threads_;
  FloatBuffer residual_;   // [tokens, hidden]
  FloatBuffer normed_;     // [tokens, hidden]
  FloatBuffer branch_;     // [tokens, hidden]: output of attention or feed-forward
  FloatBuffer gates_;      // [tokens, 2 * feed forward]
  FloatBuffer activated_;  // [tokens, feed forward]
  std::vector<float> final_hidden_state_;
};

}  // namespace foldkv_lab
