#pragma once

#include <cstdint>

#include "backends/interface/operations.h"
#include "backends/reference/attention.h"
#include "backends/reference/scratch.h"

namespace foldkv::backend::reference {

// The tokens of one layer that some rows look at, and the heads that they belong to.
struct LayerView {
  AttentionRules rules;  // of the view: its heads only
  const ExactLayout& exact_layout;
  const LatentLayer& latent;
  const AttendSequence& sequence;
  int64_t first_query_head = 0;  // in the layer
};

[[nodiscard]] LayerView layer_view(const AttentionRules& rules, const ExactLayout& exact_layout,
                                   const LatentLayer& latent, const AttendSequence& sequence);
// Of the view alone, but for rows.
[[nodiscard]] AttendShape shape_of(const LayerView& view);

// Room for the tokens of one view. Width: kv heads * head size.
struct TokenArrays {
  double* keys = nullptr;        // [tokens][width]
  double* values = nullptr;      // [tokens][max(width, value latent width)]; null: not wanted
  int32_t* positions = nullptr;  // [tokens]
  double* latent = nullptr;      // [key latent width]

  static TokenArrays place(const AttendShape& shape, bool with_values, Scratch& scratch);
};

// Keys are rebuilt and rotated, values read or, of latents, decoded.
[[nodiscard]] VisibleTokens load_tokens(const LayerView& view, const TokenArrays& arrays);

}  // namespace foldkv::backend::reference
