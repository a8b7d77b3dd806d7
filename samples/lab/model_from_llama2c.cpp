#include "samples/lab/model_from_llama2c.h"

#include <cstring>

#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

// Copies numbers [start, start + count) of a view. The sizes were verified by Llama2cFile::parse.
void copy_floats(std::span<const std::byte> source, int64_t start, int64_t count, float* target) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  const std::span<const std::byte> part = source.subspan(static_cast<size_t>(start) * sizeof(float), bytes);
  std::memcpy(target, part.data(), bytes);
}

std::vector<float> vector_of(std::span<const std::byte> source, int64_t start, int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  copy_floats(source, start, count, numbers.data());
  return numbers;
}

// Part `layer` of the stacked matrices [layers, rows, columns] into rows first_row... of target.
void copy_rows(std::span<const std::byte> source, int64_t layer, int64_t rows, int64_t first_row, Matrix* target) {
  const int64_t count = rows * target->columns;
  copy_floats(source, layer * count, count, target->row(first_row));
}

ModelLayer read_layer(const Llama2cFile& file, const ModelShape& shape, int64_t layer) {
  const int64_t hidden = shape.hidden_size;
  const int64_t width = shape.kv_width();
  ModelLayer result;
  result.attention_norm = vector_of(file.attention_norm, layer * hidden, hidden);
  result.query_key_value = Matrix(hidden + 2 * width, hidden);
  copy_rows(file.query, layer, hidden, 0, &result.query_key_value);
  copy_rows(file.key, layer, width, hidden, &result.query_key_value);
  copy_rows(file.value, layer, width, hidden + width, &result.query_key_value);
  result.attention_output = Matrix(hidden, hidden);
  copy_rows(file.attention_output, layer, hidden, 0, &result.attention_output);
  result.feed_forward_norm = vector_of(file.feed_forward_norm, layer * hidden, hidden);
  result.gate_and_up = Matrix(2 * shape.feed_forward_size, hidden);
  copy_rows(file.gate, layer, shape.feed_forward_size, 0, &result.gate_and_up);
  copy_rows(file.up, layer, shape.feed_forward_size, shape.feed_forward_size, &result.gate_and_up);
  result.down = Matrix(hidden, shape.feed_forward_size);
  copy_rows(file.down, layer, hidden, 0, &result.down);
  return result;
}

}  // namespace

absl::StatusOr<Model> model_from_llama2c(const Llama2cFile& file) {
  Model model;
  ModelShape& shape = model.shape;
  shape.architecture = "llama2.c";
  shape.layer_count = file.layer_count;
  shape.hidden_size = file.hidden_size;
  shape.feed_forward_size = file.feed_forward_size;
  shape.query_heads = file.query_heads;
  shape.kv_heads = file.kv_heads;
  shape.head_size = file.head_size();
  shape.vocabulary_size = file.vocabulary_size;
  shape.context_length = file.context_length;
  shape.norm_epsilon = 1e-5;  // fixed by the format, like the base of the rotation
  shape.pairing = Pairing::kInterleaved;
  if (shape.head_size > 0 && shape.head_size <= 512) {
    shape.inverse_frequencies = standard_inverse_frequencies(10000.0, shape.head_size);
  }
  LAB_RETURN_IF_ERROR(check_shape(shape));
  model.embedding = Matrix(shape.vocabulary_size, shape.hidden_size);
  copy_rows(file.embedding, 0, shape.vocabulary_size, 0, &model.embedding);
  for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
    model.layers.push_back(read_layer(file, shape, layer));
  }
  model.final_norm = vector_of(file.final_norm, 0, shape.hidden_size);
  if (!file.classifier.empty()) {
    model.own_classifier = Matrix(shape.vocabulary_size, shape.hidden_size);
    copy_rows(file.classifier, 0, shape.vocabulary_size, 0, &model.own_classifier);
  }
  return model;
}

}  // namespace foldkv_lab
