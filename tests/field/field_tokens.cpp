#include "tests/field/field_tokens.h"

#include <cmath>

namespace foldkv::test::field {
namespace {

// The matrices belong to the model, not to the text.
std::vector<float> rows_of_layer(const std::vector<float>& text, int64_t count, int64_t rank, int64_t width,
                                 uint64_t matrix_seed) {
  const std::vector<float> matrix = numbers_of(width * rank, matrix_seed);
  std::vector<float> rows(static_cast<size_t>(count * width));
  const double length = std::sqrt(3.0 / static_cast<double>(rank));
  for (int64_t token = 0; token < count; ++token) {
    for (int64_t column = 0; column < width; ++column) {
      float sum = 0.0F;
      for (int64_t i = 0; i < rank; ++i) {
        sum += matrix[static_cast<size_t>(column * rank + i)] * text[static_cast<size_t>(token * rank + i)];
      }
      rows[static_cast<size_t>(token * width + column)] = static_cast<float>(sum * length);
    }
  }
  return rows;
}

}  // namespace

std::vector<double> plain_frequencies(int64_t rotated, double base) {
  std::vector<double> frequencies;
  for (int64_t j = 0; j < rotated / 2; ++j) {
    frequencies.push_back(std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(rotated)));
  }
  return frequencies;
}

LayerShape layer_of(int32_t query_heads, int32_t kv_heads, int32_t head_size) {
  LayerShape layer;
  layer.query_heads = query_heads;
  layer.kv_heads = kv_heads;
  layer.head_size = head_size;
  layer.frequencies = plain_frequencies(head_size);
  return layer;
}

std::vector<LayerShape> layers_of(int64_t count, const LayerShape& layer) {
  return std::vector<LayerShape>(static_cast<size_t>(count), layer);
}

std::vector<float> numbers_of(int64_t count, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
  for (float& number : numbers) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    number = static_cast<float>(state >> 40) / 8388608.0F - 1.0F;
  }
  return numbers;
}

Tokens text_of(const std::vector<LayerShape>& layers, int64_t count, uint64_t seed, int64_t rank) {
  Tokens tokens;
  tokens.count = count;
  std::vector<float> text = numbers_of(count * rank, seed * 2);
  // Directions of falling variance, as real keys have them.
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] *= 4.0F / (1.0F + 0.25F * static_cast<float>(i % static_cast<size_t>(rank)));
  }
  uint64_t matrix = 1000;
  for (const LayerShape& layer : layers) {
    tokens.key.push_back(rows_of_layer(text, count, rank, layer.key_width(), ++matrix));
    tokens.value.push_back(rows_of_layer(text, count, rank, layer.key_width(), ++matrix));
    tokens.query.push_back(numbers_of(count * layer.query_width(), seed * 2 + 500 * ++matrix));
  }
  return tokens;
}

}  // namespace foldkv::test::field
