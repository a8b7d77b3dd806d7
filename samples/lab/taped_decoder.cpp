#include "samples/lab/taped_decoder.h"

#include <algorithm>
#include <cmath>

#include "samples/lab/gated_unit.h"
#include "samples/lab/linear.h"
#include "samples/lab/rms_norm.h"
#include "samples/lab/row_blocks.h"

namespace foldkv_lab {
namespace {

LayerTape blank_tape(const ModelShape& shape, int64_t rows, int64_t tokens) {
  return {FloatBuffer(rows * shape.hidden_size),          FloatBuffer(rows * shape.query_width()),
          FloatBuffer(tokens * shape.kv_width()),         FloatBuffer(tokens * shape.kv_width()),
          FloatBuffer(rows * shape.query_width()),        FloatBuffer(rows * shape.hidden_size),
          FloatBuffer(rows * 2 * shape.feed_forward_size)};
}

// output [rows, hidden]; all rows of input, which may be part of a larger buffer.
void normalize(const Model& model, const std::vector<float>& weight, const float* input, int64_t rows, float* output) {
  const int64_t hidden = model.shape.hidden_size;
  for (int64_t row = 0; row < rows; ++row) {
    rms_norm(input + row * hidden, weight.data(), hidden, model.shape.norm_epsilon, output + row * hidden);
  }
}

}  // namespace

TapedDecoder::TapedDecoder(const Model& model, const CachedContext& context, std::span<const Token> fed,
                           ThreadPool& threads)
    : model_(model),
      context_(context),
      threads_(threads),
      rows_(static_cast<int64_t>(fed.size())),
      query_scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.shape.head_size)))),
      rotation_(model.shape),
      output_(rows_ * model.shape.hidden_size) {
  const ModelShape& shape = model.shape;
  rotation_.extend(context.tokens + rows_);
  for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
    tape_.push_back(blank_tape(shape, rows_, context.tokens + rows_));
  }
  for (size_t row = 0; row < fed.size(); ++row) {
    std::copy_n(model.embedding.row(fed[row]), shape.hidden_size,
                tape_[0].input.data() + static_cast<int64_t>(row) * shape.hidden_size);
  }
  for (size_t layer = 0; layer < tape_.size(); ++layer) {
    const int64_t index = static_cast<int64_t>(layer);
    store_context(index);
    project(index);
    attend(attention(index), tape_[layer].mixed.data(), threads_);
    finish_layer(index, layer + 1 < tape_.size() ? tape_[layer + 1].input.data() : output_.data());
  }
}

FedAttention TapedDecoder::attention(int64_t layer) const {
  const LayerTape& tape = tape_[static_cast<size_t>(layer)];
  return {model_.shape, context_.tokens + rows_, rows_, tape.queries.data(), tape.keys.data(), tape.values.data()};
}

void TapedDecoder::store_context(int64_t layer) {
  const size_t index = static_cast<size_t>(layer);
  const int64_t width = model_.shape.kv_width();
  LayerTape& tape = tape_[index];
  for_row_blocks(context_.tokens, threads_, [&](int64_t first, int64_t count) {
    for (int64_t token = first; token < first + count; ++token) {
      for (int64_t start = token * width; start < (token + 1) * width; start += model_.shape.head_size) {
        rotation_.rotate(context_.keys[index].data() + start, token, tape.keys.data() + start);
      }
    }
    std::copy_n(context_.values[index].data() + first * width, count * width, tape.values.data() + first * width);
  });
}

// Queries, keys and values of the fed rows.
void TapedDecoder::project(int64_t layer) {
  const ModelLayer& weights = model_.layers[static_cast<size_t>(layer)];
  LayerTape& tape = tape_[static_cast<size_t>(layer)];
  const int64_t hidden = model_.shape.hidden_size;
  const int64_t row_width = model_.shape.query_width() + 2 * model_.shape.kv_width();
  const float* bias = weights.query_key_value_bias.empty() ? nullptr : weights.query_key_value_bias.data();
  for_row_blocks(rows_, threads_, [&](int64_t first, int64_t count) {
    ThreadPool own_thread(1);
    FloatBuffer normed(count * hidden);
    FloatBuffer projected(count * row_width);
    normalize(model_, weights.attention_norm, tape.input.data() + first * hidden, count, normed.data());
    linear(weights.query_key_value, bias, normed.data(), count, projected.data(), own_thread);
    for (int64_t i = 0; i < count; ++i) store_row(first + i, projected.data() + i * row_width, &tape);
  });
}

// projected: query, key and value of the row.
void TapedDecoder::store_row(int64_t row, const float* projected, LayerTape* tape) {
  const int64_t head_size = model_.shape.head_size;
  const int64_t query_width = model_.shape.query_width();
  const int64_t width = model_.shape.kv_width();
  const int64_t position = context_.tokens + row;
  float* query = tape->queries.data() + row * query_width;
  float* key = tape->keys.data() + position * width;
  for (int64_t i = 0; i < query_width; i += head_size) rotation_.rotate(projected + i, position, query + i);
  for (int64_t i = 0; i < query_width; ++i) query[i] *= query_scale_;
  for (int64_t i = 0; i < width; i += head_size) rotation_.rotate(projected + query_width + i, position, key + i);
  std::copy_n(projected + query_width + width, width, tape->values.data() + position * width);
}

// From the heads' output to the residual stream after the feed-forward: output [rows, hidden].
void TapedDecoder::finish_layer(int64_t layer, float* output) {
  const ModelLayer& weights = model_.layers[static_cast<size_t>(layer)];
  LayerTape& tape = tape_[static_cast<size_t>(layer)];
  const int64_t hidden = model_.shape.hidden_size;
  const int64_t query_width = model_.shape.query_width();
  const int64_t size = model_.shape.feed_forward_size;
  for_row_blocks(rows_, threads_, [&](int64_t first, int64_t count) {
    ThreadPool own_thread(1);
    FloatBuffer normed(count * hidden);
    FloatBuffer activated(count * size);
    const float* input = tape.input.data() + first * hidden;
    float* middle = tape.middle.data() + first * hidden;
    float* gates = tape.gates.data() + first * 2 * size;
    float* block_output = output + first * hidden;
    linear(weights.attention_output, nullptr, tape.mixed.data() + first * query_width, count, middle, own_thread);
    for (int64_t i = 0; i < count * hidden; ++i) middle[i] += input[i];
    normalize(model_, weights.feed_forward_norm, middle, count, normed.data());
    linear(weights.gate_and_up, nullptr, normed.data(), count, gates, own_thread);
    for (int64_t i = 0; i < count; ++i) {
      gated_unit(gates + i * 2 * size, gates + (i * 2 + 1) * size, size, activated.data() + i * size);
    }
    linear(weights.down, nullptr, activated.data(), count, block_output, own_thread);
    for (int64_t i = 0; i < count * hidden; ++i) block_output[i] += middle[i];
  });
}

}  // namespace foldkv_lab
