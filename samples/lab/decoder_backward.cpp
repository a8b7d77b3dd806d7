#include "samples/lab/decoder_backward.h"

#include <algorithm>

#include "samples/lab/gated_unit.h"
#include "samples/lab/linear.h"
#include "samples/lab/rms_norm.h"
#include "samples/lab/row_blocks.h"

namespace foldkv_lab {

DecoderBackward::DecoderBackward(const TapedDecoder& decoder, FloatBuffer stream_gradient, ThreadPool& threads)
    : decoder_(decoder),
      shape_(decoder.model().shape),
      threads_(threads),
      stream_gradient_(std::move(stream_gradient)),
      mixed_gradient_(decoder.rows() * shape_.query_width()) {
  for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
    keys_.emplace_back(decoder.context_tokens() * shape_.kv_width());
    values_.emplace_back(decoder.context_tokens() * shape_.kv_width());
  }
  for (int64_t layer = shape_.layer_count - 1; layer >= 0; --layer) {
    feed_forward(layer);
    const FedAttentionGradients gradients =
        attend_backward(decoder.attention(layer), decoder.layer(layer).mixed.data(), mixed_gradient_.data(), threads);
    store_context(layer, gradients);
    if (layer > 0) project(layer, gradients);  // what is below the first layer is not asked for
  }
}

// From behind the feed-forward to the heads' output.
void DecoderBackward::feed_forward(int64_t layer) {
  const ModelLayer& weights = decoder_.model().layers[static_cast<size_t>(layer)];
  const LayerTape& tape = decoder_.layer(layer);
  const int64_t hidden = shape_.hidden_size;
  const int64_t size = shape_.feed_forward_size;
  for_row_blocks(decoder_.rows(), threads_, [&](int64_t first, int64_t count) {
    ThreadPool own_thread(1);
    FloatBuffer activated(count * size);  // all three hold gradients
    FloatBuffer gates(count * 2 * size);
    FloatBuffer normed(count * hidden);
    float* stream = stream_gradient_.data() + first * hidden;
    linear_backward(weights.down, stream, count, activated.data(), own_thread);
    for (int64_t i = 0; i < count; ++i) {
      const float* gate = tape.gates.data() + (first + i) * 2 * size;
      float* gradient = gates.data() + i * 2 * size;
      gated_unit_backward(gate, gate + size, size, activated.data() + i * size, gradient, gradient + size);
    }
    linear_backward(weights.gate_and_up, gates.data(), count, normed.data(), own_thread);
    for (int64_t i = 0; i < count; ++i) {
      rms_norm_backward(tape.middle.data() + (first + i) * hidden, weights.feed_forward_norm.data(), hidden,
                        shape_.norm_epsilon, normed.data() + i * hidden, stream + i * hidden);
    }
    linear_backward(weights.attention_output, stream, count, mixed_gradient_.data() + first * shape_.query_width(),
                    own_thread);
  });
}

void DecoderBackward::store_context(int64_t layer, const FedAttentionGradients& gradients) {
  const int64_t width = shape_.kv_width();
  float* keys = keys_[static_cast<size_t>(layer)].data();
  for_row_blocks(decoder_.context_tokens(), threads_, [&](int64_t first, int64_t count) {
    for (int64_t token = first; token < first + count; ++token) {
      for (int64_t start = token * width; start < (token + 1) * width; start += shape_.head_size) {
        decoder_.rotation().rotate_back(gradients.keys.data() + start, token, keys + start);
      }
    }
  });
  std::copy_n(gradients.values.data(), decoder_.context_tokens() * width, values_[static_cast<size_t>(layer)].data());
}

// From queries, keys and values of the fed rows to the residual stream before the layer.
void DecoderBackward::project(int64_t layer, const FedAttentionGradients& gradients) {
  const ModelLayer& weights = decoder_.model().layers[static_cast<size_t>(layer)];
  const LayerTape& tape = decoder_.layer(layer);
  const int64_t hidden = shape_.hidden_size;
  const int64_t row_width = shape_.query_width() + 2 * shape_.kv_width();
  for_row_blocks(decoder_.rows(), threads_, [&](int64_t first, int64_t count) {
    ThreadPool own_thread(1);
    FloatBuffer projected(count * row_width);  // both hold gradients
    FloatBuffer normed(count * hidden);
    for (int64_t i = 0; i < count; ++i) gather_row(first + i, gradients, projected.data() + i * row_width);
    linear_backward(weights.query_key_value, projected.data(), count, normed.data(), own_thread);
    for (int64_t i = 0; i < count; ++i) {
      rms_norm_backward(tape.input.data() + (first + i) * hidden, weights.attention_norm.data(), hidden,
                        shape_.norm_epsilon, normed.data() + i * hidden,
                        stream_gradient_.data() + (first + i) * hidden);
    }
  });
}

// projected: the gradient of the row's query, key and value before rotation and scale.
void DecoderBackward::gather_row(int64_t row, const FedAttentionGradients& gradients, float* projected) const {
  const RotationTable& rotation = decoder_.rotation();
  const int64_t query_width = shape_.query_width();
  const int64_t width = shape_.kv_width();
  const int64_t position = decoder_.context_tokens() + row;
  const float* query = gradients.queries.data() + row * query_width;
  const float* key = gradients.keys.data() + position * width;
  for (int64_t i = 0; i < query_width; i += shape_.head_size) rotation.rotate_back(query + i, position, projected + i);
  for (int64_t i = 0; i < query_width; ++i) projected[i] *= decoder_.query_scale();
  for (int64_t i = 0; i < width; i += shape_.head_size) {
    rotation.rotate_back(key + i, position, projected + query_width + i);
  }
  std::copy_n(gradients.values.data() + position * width, width, projected + query_width + width);
}

}  // namespace foldkv_lab
