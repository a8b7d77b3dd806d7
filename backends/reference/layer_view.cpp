#include "backends/reference/layer_view.h"

#include <algorithm>

#include "backends/reference/exact_row.h"
#include "backends/reference/latent_row.h"
#include "backends/reference/latent_token.h"
#include "backends/reference/numbers.h"
#include "backends/reference/rotation.h"

namespace foldkv::backend::reference {
namespace {

int64_t width_of(const AttentionRules& rules) { return rules.kv_heads * rules.head_size; }

void describe_value_latents(const LayerView& view, const TokenArrays& arrays, VisibleTokens& tokens) {
  const LatentPlane& plane = view.latent.layout->values;
  tokens.value_latents = arrays.values;
  tokens.value_latent_width = plane.stored_width;
  tokens.value_basis_stride = plane.width;
  tokens.value_basis = view.latent.value_basis;
  tokens.value_coordinate = plane.coordinate_of(view.latent.first_row);
  const uint16_t* const mean = view.sequence.latent.value_mean;
  if (mean != nullptr) tokens.value_mean = mean + view.latent.first_row;
}

void load_latent_tokens(const LayerView& view, const TokenArrays& arrays, VisibleTokens& tokens) {
  const LatentLayout& layout = *view.latent.layout;
  const AttentionRules& rules = view.rules;
  const LatentRegion& region = view.sequence.latent;
  const int64_t width = width_of(rules);
  const LatentSlice slice =
      latent_slice(layout, region, Side::kKeys, view.latent.key_basis, view.latent.first_row, width, true);
  tokens.latent_count = region.token_count;
  describe_value_latents(view, arrays, tokens);
  for (int64_t t = 0; t < tokens.latent_count; ++t) {
    double* const key = arrays.keys + t * width;
    arrays.positions[t] = position_of(view.sequence.latent_positions, t);
    rebuild_token(slice, region.pages, t, arrays.latent, key);
    rotate_heads(rules.rotation, arrays.positions[t], rules.kv_heads, rules.head_size, key);
    if (arrays.values == nullptr) continue;
    read_latent(layout.values, region.pages[t / layout.page_tokens], t % layout.page_tokens,
                arrays.values + t * layout.values.stored_width, view.latent.first_row / layout.values.width);
  }
}

void load_exact_tokens(const LayerView& view, const TokenArrays& arrays, VisibleTokens& tokens) {
  const AttentionRules& rules = view.rules;
  const ExactLayout& layout = view.exact_layout;
  const ExactRegion& region = view.sequence.exact;
  const int64_t width = width_of(rules);
  double* const keys = arrays.keys + tokens.latent_count * width;
  int32_t* const positions = arrays.positions + tokens.latent_count;
  double* values = nullptr;
  if (arrays.values != nullptr) values = arrays.values + tokens.latent_count * tokens.value_latent_width;
  tokens.exact_count = region.token_count;
  tokens.values = values;
  for (int64_t t = 0; t < tokens.exact_count; ++t) {
    positions[t] = position_of(view.sequence.exact_positions, t);
    read_numbers(layout.format, exact_row(layout, region.pages, t, Side::kKeys), width, keys + t * width);
    rotate_heads(rules.rotation, positions[t], rules.kv_heads, rules.head_size, keys + t * width);
    if (values == nullptr) continue;
    read_numbers(layout.format, exact_row(layout, region.pages, t, Side::kValues), width, values + t * width);
  }
}

}  // namespace

LayerView layer_view(const AttentionRules& rules, const ExactLayout& exact_layout, const LatentLayer& latent,
                     const AttendSequence& sequence) {
  const int64_t group = rules.query_heads / rules.kv_heads;
  LayerView view{rules, exact_layout, latent, sequence, sequence.first_head * group};
  view.rules.kv_heads = sequence.kv_heads(rules);
  view.rules.query_heads = view.rules.kv_heads * group;
  return view;
}

AttendShape shape_of(const LayerView& view) {
  AttendShape shape;
  shape.query_heads = view.rules.query_heads;
  shape.kv_heads = view.rules.kv_heads;
  shape.head_size = view.rules.head_size;
  if (view.latent.layout != nullptr) {
    shape.key_latent_width = view.latent.layout->keys.stored_width;
    shape.value_latent_width = view.latent.layout->values.stored_width;
  }
  shape.total_tokens = view.sequence.latent.token_count + view.sequence.exact.token_count;
  return shape;
}

TokenArrays TokenArrays::place(const AttendShape& shape, bool with_values, Scratch& scratch) {
  const int64_t width = shape.kv_heads * shape.head_size;
  TokenArrays arrays;
  arrays.keys = scratch.take<double>(shape.total_tokens * width);
  // Exact values and latents have arrays of their own kind: room for either width serves any split.
  if (with_values) {
    arrays.values = scratch.take<double>(shape.total_tokens * std::max(width, shape.value_latent_width));
  }
  arrays.positions = scratch.take<int32_t>(shape.total_tokens);
  arrays.latent = scratch.take<double>(shape.key_latent_width);
  return arrays;
}

VisibleTokens load_tokens(const LayerView& view, const TokenArrays& arrays) {
  VisibleTokens tokens;
  tokens.keys = arrays.keys;
  tokens.positions = arrays.positions;
  if (view.sequence.latent.token_count > 0) load_latent_tokens(view, arrays, tokens);
  load_exact_tokens(view, arrays, tokens);
  return tokens;
}

}  // namespace foldkv::backend::reference
