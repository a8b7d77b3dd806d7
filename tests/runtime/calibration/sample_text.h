#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "backends/interface/backend.h"
#include "runtime/base/tensor_view.h"
#include "runtime/model/model.h"

namespace foldkv::test {

// Layers without rotation, norms and windows.
inline ModelDescription plain_description(int64_t layer_count, int64_t kv_heads, int64_t head_size) {
  LayerRules layer;
  layer.query_heads = kv_heads;
  layer.kv_heads = kv_heads;
  layer.head_size = head_size;
  ModelDescription description;
  description.layers.assign(static_cast<size_t>(layer_count), layer);
  return description;
}

// Normal numbers mixed so that columns depend on each other, with spreads that differ and the given mean.
inline std::vector<float> sample_rows(int64_t count, int64_t width, float mean, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<float> rows(static_cast<size_t>(count * width));
  for (int64_t row = 0; row < count; ++row) {
    const double common = normal(generator);
    for (int64_t column = 0; column < width; ++column) {
      const double own = normal(generator) * (0.5 + static_cast<double>(column % 5));
      const double number = static_cast<double>(mean) * (column % 2 == 0 ? 1.0 : -0.5) + own + common;
      rows[static_cast<size_t>(row * width + column)] = static_cast<float>(number);
    }
  }
  return rows;
}

inline TensorView view_of(const std::vector<float>& rows, int64_t width) {
  return {reinterpret_cast<const std::byte*>(rows.data()), NumberFormat::kF32,
          static_cast<int64_t>(rows.size()) / width, width, width};
}

// Keys and values of every layer for one run of tokens, all of one width.
struct SampleText {
  SampleText(int64_t layer_count, int64_t tokens, int64_t row_width, uint32_t seed, float mean = 3.0f)
      : width(row_width) {
    for (int64_t layer = 0; layer < layer_count; ++layer) {
      const auto layer_seed = seed * 1000 + static_cast<uint32_t>(layer) * 2;
      keys.push_back(sample_rows(tokens, width, mean, layer_seed));
      values.push_back(sample_rows(tokens, width, -mean, layer_seed + 1));
    }
  }

  [[nodiscard]] static std::vector<TensorView> views(const std::vector<std::vector<float>>& layers, int64_t width) {
    std::vector<TensorView> result;
    for (const std::vector<float>& rows : layers) result.push_back(view_of(rows, width));
    return result;
  }
  [[nodiscard]] std::vector<TensorView> key_views() const { return views(keys, width); }
  [[nodiscard]] std::vector<TensorView> value_views() const { return views(values, width); }

  int64_t width;
  std::vector<std::vector<float>> keys;
  std::vector<std::vector<float>> values;
};

// Tokens [first, first + count) of all layers.
inline std::vector<TensorView> slice(const std::vector<TensorView>& layers, int64_t first, int64_t count) {
  std::vector<TensorView> result;
  for (const TensorView& layer : layers) result.push_back(layer.rows(first, count));
  return result;
}

}  // namespace foldkv::test
