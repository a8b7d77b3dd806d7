#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "samples/lab/aligned_buffer.h"

namespace foldkv_lab {

// Which two numbers of a head turn together: GGUF files of llama models and llama2.c files hold interleaved pairs
// (2i, 2i + 1), GGUF files of qwen2 models half-split pairs (i, i + head_size / 2).
enum class Pairing { kInterleaved, kHalfSplit };

struct ModelShape {
  std::string architecture;  // "llama", "qwen2", "llama2.c"
  int64_t layer_count = 0;
  int64_t hidden_size = 0;
  int64_t feed_forward_size = 0;
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t vocabulary_size = 0;
  int64_t context_length = 0;  // what the model was trained for
  double norm_epsilon = 0;
  Pairing pairing = Pairing::kInterleaved;
  std::vector<double> inverse_frequencies;  // one per rotated pair

  [[nodiscard]] int64_t query_width() const { return query_heads * head_size; }
  [[nodiscard]] int64_t kv_width() const { return kv_heads * head_size; }
  // Keys and values of one token over all layers in 16-bit numbers.
  [[nodiscard]] int64_t full_token_bytes() const { return layer_count * 2 * kv_width() * 2; }
};

// Refuses sizes that no decoder has, before anything is computed from them.
[[nodiscard]] absl::Status check_shape(const ModelShape& shape);

// base^(-2j / rotated_size) for each pair j.
[[nodiscard]] std::vector<double> standard_inverse_frequencies(double base, int64_t rotated_size);

// Weights as [rows = outputs, columns = inputs]: y = x * weight^T.
struct Matrix {
  Matrix() = default;
  Matrix(int64_t row_count, int64_t column_count)
      : rows(row_count), columns(column_count), numbers(row_count * column_count) {}

  [[nodiscard]] float* row(int64_t index) { return numbers.data() + index * columns; }
  [[nodiscard]] const float* row(int64_t index) const { return numbers.data() + index * columns; }

  int64_t rows = 0;
  int64_t columns = 0;
  FloatBuffer numbers;
};

// Matrices that read the same input stand on top of each other, so that one product serves them all.
struct ModelLayer {
  std::vector<float> attention_norm;
  Matrix query_key_value;                   // [query_width + 2 * kv_width, hidden]
  std::vector<float> query_key_value_bias;  // empty: none
  Matrix attention_output;                  // [hidden, query_width]
  std::vector<float> feed_forward_norm;
  Matrix gate_and_up;  // [2 * feed_forward, hidden]
  Matrix down;         // [hidden, feed_forward]
};

// One decoder in memory, weights in f32.
struct Model {
  ModelShape shape;
  Matrix embedding;  // [vocabulary, hidden]
  std::vector<ModelLayer> layers;
  std::vector<float> final_norm;
  Matrix own_classifier;  // empty when the embedding serves as classifier

  [[nodiscard]] const Matrix& classifier() const { return own_classifier.rows > 0 ? own_classifier : embedding; }
};

}  // namespace foldkv_lab
