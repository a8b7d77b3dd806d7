#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samples/lab/aligned_buffer.h"
#include "samples/lab/cached_context.h"
#include "samples/lab/fed_attention.h"
#include "samples/lab/model.h"
#include "samples/lab/rotation_table.h"
#include "samples/lab/thread_pool.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// What the backward pass needs of one layer. Rows are fed tokens, tokens those of the context and then the fed ones.
struct LayerTape {
  FloatBuffer input;    // [rows, hidden]: residual stream before attention
  FloatBuffer queries;  // [rows, query width], rotated and scaled
  FloatBuffer keys;     // [tokens, kv width], rotated
  FloatBuffer values;   // [tokens, kv width]
  FloatBuffer mixed;    // [rows, query width]: output of the heads
  FloatBuffer middle;   // [rows, hidden]: residual stream before the feed-forward
  FloatBuffer gates;    // [rows, 2 * feed forward]
};

// Walks through the decoder like Decoder, but all tokens at once, over a context that is given, and remembers.
class TapedDecoder {
 public:
  // Sizes and tokens must have been checked. All arguments must outlive this object.
  TapedDecoder(const Model& model, const CachedContext& context, std::span<const Token> fed, ThreadPool& threads);

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] int64_t context_tokens() const { return context_.tokens; }
  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] const LayerTape& layer(int64_t layer) const { return tape_[static_cast<size_t>(layer)]; }
  [[nodiscard]] FedAttention attention(int64_t layer) const;
  [[nodiscard]] const RotationTable& rotation() const { return rotation_; }
  [[nodiscard]] float query_scale() const { return query_scale_; }
  // [rows, hidden]: residual stream after the last layer.
  [[nodiscard]] const FloatBuffer& output() const { return output_; }

 private:
  void store_context(int64_t layer);
  void project(int64_t layer);
  void store_row(int64_t row, const float* projected, LayerTape* tape);
  void finish_layer(int64_t layer, float* output);

  const Model& model_;
  const CachedContext& context_;
  ThreadPool& threads_;
  int64_t rows_;
  float query_scale_;
  RotationTable rotation_;
  std::vector<LayerTape> tape_;
  FloatBuffer output_;
};

}  // namespace foldkv_lab
