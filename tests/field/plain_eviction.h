#pragma once

#include <cstdint>
#include <vector>

#include "tests/field/field_tokens.h"
#include "tests/support/plain_attention.h"

// The published eviction of layer groups, in double precision and with all rows at hand: attention of the prompt's last
// rows summed over rows, query heads and layers; the largest of thirteen neighbours; ends kept.
namespace foldkv::test::field {

struct PlainEviction {
  int64_t sinks = 4;
  int64_t recent = 64;  // as many rows vote
};

// Attention of the last rows on each of `count` tokens, summed over rows, query heads and the layers [first, last].
[[nodiscard]] std::vector<double> window_sums(const std::vector<LayerShape>& layers, const Tokens& text, int64_t count,
                                              int64_t rows, size_t first, size_t last);

// Positions kept of a prompt: ends, and so many of the others by their score, ties to the older.
[[nodiscard]] std::vector<int64_t> kept_plainly(const std::vector<double>& sums, const PlainEviction& ends,
                                                int64_t others);

}  // namespace foldkv::test::field
