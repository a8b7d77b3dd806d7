#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "samples/lab/aligned_buffer.h"
#include "samples/lab/fed_attention.h"
#include "samples/lab/taped_decoder.h"
#include "samples/lab/thread_pool.h"

namespace foldkv_lab {

// Walks back through a decoder, from the last layer's output to the first layer's keys and values.
class DecoderBackward {
 public:
  // stream_gradient [rows, hidden]: of decoder.output(). The others must outlive this object.
  DecoderBackward(const TapedDecoder& decoder, FloatBuffer stream_gradient, ThreadPool& threads);

  // Of the context, for each layer [context tokens, kv_width]; keys before rotation.
  [[nodiscard]] std::vector<FloatBuffer> take_keys() { return std::move(keys_); }
  [[nodiscard]] std::vector<FloatBuffer> take_values() { return std::move(values_); }

 private:
  void feed_forward(int64_t layer);
  void store_context(int64_t layer, const FedAttentionGradients& gradients);
  void project(int64_t layer, const FedAttentionGradients& gradients);
  void gather_row(int64_t row, const FedAttentionGradients& gradients, float* projected) const;

  const TapedDecoder& decoder_;
  const ModelShape& shape_;
  ThreadPool& threads_;
  FloatBuffer stream_gradient_;  // [rows, hidden]: of the residual stream where the walk stands
  FloatBuffer mixed_gradient_;   // [rows, query width]: of the heads' output
  std::vector<FloatBuffer> keys_;
  std::vector<FloatBuffer> values_;
};

}  // namespace foldkv_lab
