#pragma once

#include <cstdint>

#include "samples/lab/aligned_buffer.h"
#include "samples/lab/model.h"
#include "samples/lab/thread_pool.h"

namespace foldkv_lab {

// Attention of one layer whose queries are those of the last `rows` of `tokens` tokens: each sees all tokens up to its
// own. Probabilities are not kept; the backward pass computes them anew, bit for bit.
struct FedAttention {
  const ModelShape& shape;
  int64_t tokens;
  int64_t rows;
  const float* queries;  // [rows, query width], rotated and scaled
  const float* keys;     // [tokens, kv width], rotated
  const float* values;   // [tokens, kv width]
};

// mixed [rows, query width]: probability-weighted values of each query head.
void attend(const FedAttention& attention, float* mixed, ThreadPool& threads);

struct FedAttentionGradients {
  FloatBuffer queries;  // of what FedAttention names, of the same shapes
  FloatBuffer keys;
  FloatBuffer values;
};

// mixed: what attend gave; mixed_gradient [rows, query width].
[[nodiscard]] FedAttentionGradients attend_backward(const FedAttention& attention, const float* mixed,
                                                    const float* mixed_gradient, ThreadPool& threads);

}  // namespace foldkv_lab
