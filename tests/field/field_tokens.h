#pragma once

#include <cstdint>
#include <vector>

#include "foldkv/foldkv.h"
#include "tests/support/layer_shape.h"

// Models without weights and text without words: the rows that a host would hand over.
namespace foldkv::test::field {

// base^(-2j / rotated) for j below rotated / 2.
[[nodiscard]] std::vector<double> plain_frequencies(int64_t rotated, double base = 10000.0);
// A layer of this shape that rotates whole heads.
[[nodiscard]] LayerShape layer_of(int32_t query_heads, int32_t kv_heads, int32_t head_size);
// The same layer so many times.
[[nodiscard]] std::vector<LayerShape> layers_of(int64_t count, const LayerShape& layer);

// Rows [tokens][width] of every layer; keys before rotation.
struct Tokens {
  int64_t count = 0;
  std::vector<std::vector<float>> query, key, value;
};

// Numbers between -1 and 1 that depend on the seed alone.
[[nodiscard]] std::vector<float> numbers_of(int64_t count, uint64_t seed);

// Keys and values of all layers are fixed matrices times one vector of `rank` numbers per token, as if layers were
// copies of one another: a latent of that width loses nothing.
[[nodiscard]] Tokens text_of(const std::vector<LayerShape>& layers, int64_t count, uint64_t seed, int64_t rank = 24);

}  // namespace foldkv::test::field
