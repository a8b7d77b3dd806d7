#include "backends/reference/attend.h"

#include <algorithm>

#include "backends/reference/attention.h"
#include "backends/reference/exact_row.h"
#include "backends/reference/latent_row.h"
#include "backends/reference/latent_token.h"
#include "backends/reference/numbers.h"
#include "backends/reference/rotation.h"
#include "backends/reference/scratch.h"

namespace foldkv::backend::reference {
namespace {

// One sequence at a time: its keys are rebuilt and rotated, its values decoded, before any query looks at them.
struct Arrays {
  double* keys = nullptr;         // [tokens][width]
  double* values = nullptr;       // [tokens][max(width, value latent width)]
  int32_t* positions = nullptr;   // [tokens]
  double* latent = nullptr;       // [key latent width]
  double* query = nullptr;        // [query_heads][head_size]
  double* context = nullptr;      // [query_heads][head_size]
  double* log_sum_exp = nullptr;  // [query_heads]
  AttentionScratch attention;
};

Arrays place_arrays(const AttendShape& shape, Scratch& scratch) {
  const int64_t width = shape.kv_heads * shape.head_size;
  Arrays arrays;
  arrays.keys = scratch.take<double>(shape.total_tokens * width);
  // Exact values and latents have arrays of their own kind: room for either width serves any split.
  arrays.values = scratch.take<double>(shape.total_tokens * std::max(width, shape.value_latent_width));
  arrays.positions = scratch.take<int32_t>(shape.total_tokens);
  arrays.latent = scratch.take<double>(shape.key_latent_width);
  arrays.query = scratch.take<double>(shape.query_heads * shape.head_size);
  arrays.context = scratch.take<double>(shape.query_heads * shape.head_size);
  arrays.log_sum_exp = scratch.take<double>(shape.query_heads);
  arrays.attention.weights = scratch.take<double>(shape.total_tokens);
  arrays.attention.latent_sum = scratch.take<double>(shape.value_latent_width);
  return arrays;
}

AttendShape shape_of(const AttendRequest& request, const AttendSequence& sequence) {
  AttendShape shape;
  shape.query_heads = request.rules.query_heads;
  shape.kv_heads = request.rules.kv_heads;
  shape.head_size = request.rules.head_size;
  if (request.latent.layout != nullptr) {
    shape.key_latent_width = request.latent.layout->keys.stored_width;
    shape.value_latent_width = request.latent.layout->values.stored_width;
  }
  shape.total_tokens = sequence.latent.token_count + sequence.exact.token_count;
  return shape;
}

void load_latent_tokens(const AttendRequest& request, const AttendSequence& sequence, const Arrays& arrays,
                        VisibleTokens& tokens) {
  const LatentLayout& layout = *request.latent.layout;
  const AttentionRules& rules = request.rules;
  const int64_t width = rules.kv_heads * rules.head_size;
  const LatentSlice slice = latent_slice(layout, sequence.latent, Side::kKeys, request.latent.key_basis,
                                         request.latent.first_row, width, true);
  tokens.latent_count = sequence.latent.token_count;
  tokens.value_latents = arrays.values;
  tokens.value_latent_width = layout.values.stored_width;
  tokens.value_basis_stride = layout.values.width;
  tokens.value_basis = request.latent.value_basis;
  tokens.value_coordinate = layout.values.coordinate_of(request.latent.first_row);
  if (sequence.latent.value_mean != nullptr) tokens.value_mean = sequence.latent.value_mean + request.latent.first_row;
  for (int64_t t = 0; t < tokens.latent_count; ++t) {
    double* const key = arrays.keys + t * width;
    arrays.positions[t] = position_of(sequence.latent_positions, t);
    rebuild_token(slice, sequence.latent.pages, t, arrays.latent, key);
    rotate_heads(rules.rotation, arrays.positions[t], rules.kv_heads, rules.head_size, key);
    read_latent(layout.values, sequence.latent.pages[t / layout.page_tokens], t % layout.page_tokens,
                arrays.values + t * layout.values.stored_width, request.latent.first_row / layout.values.width);
  }
}

void load_exact_tokens(const AttendRequest& request, const AttendSequence& sequence, const Arrays& arrays,
                       VisibleTokens& tokens) {
  const AttentionRules& rules = request.rules;
  const ExactLayout& layout = request.exact_layout;
  const int64_t width = rules.kv_heads * rules.head_size;
  double* const keys = arrays.keys + tokens.latent_count * width;
  double* const values = arrays.values + tokens.latent_count * tokens.value_latent_width;
  int32_t* const positions = arrays.positions + tokens.latent_count;
  tokens.exact_count = sequence.exact.token_count;
  tokens.values = values;
  for (int64_t t = 0; t < tokens.exact_count; ++t) {
    positions[t] = position_of(sequence.exact_positions, t);
    read_numbers(layout.format, exact_row(layout, sequence.exact.pages, t, Side::kKeys), width, keys + t * width);
    rotate_heads(rules.rotation, positions[t], rules.kv_heads, rules.head_size, keys + t * width);
    read_numbers(layout.format, exact_row(layout, sequence.exact.pages, t, Side::kValues), width, values + t * width);
  }
}

void attend_sequence(const AttendRequest& request, const AttendSequence& sequence) {
  const AttentionRules& rules = request.rules;
  const int64_t row_width = rules.query_heads * rules.head_size;
  Scratch scratch(request.workspace);
  const Arrays arrays = place_arrays(shape_of(request, sequence), scratch);
  VisibleTokens tokens;
  tokens.keys = arrays.keys;
  tokens.positions = arrays.positions;
  if (sequence.latent.token_count > 0) load_latent_tokens(request, sequence, arrays, tokens);
  load_exact_tokens(request, sequence, arrays, tokens);
  for (int64_t r = 0; r < sequence.row_count; ++r) {
    const int64_t row = sequence.first_row + r;
    const float* const query = request.queries + row * row_width;
    std::copy_n(query, row_width, arrays.query);
    attend_row(rules, tokens, arrays.query, sequence.query_positions[r], arrays.attention, arrays.context,
               arrays.log_sum_exp);
    for (int64_t i = 0; i < row_width; ++i) {
      request.context[row * row_width + i] = static_cast<float>(arrays.context[i]);
    }
    if (request.log_sum_exp == nullptr) continue;
    for (int64_t head = 0; head < rules.query_heads; ++head) {
      request.log_sum_exp[row * rules.query_heads + head] = static_cast<float>(arrays.log_sum_exp[head]);
    }
  }
}

}  // namespace

int64_t attend_workspace(const AttendShape& shape) {
  Scratch scratch(nullptr);
  (void)place_arrays(shape, scratch);
  return scratch.used();
}

Status attend(const AttendRequest& request) {
  for (const AttendSequence& sequence : request.sequences) attend_sequence(request, sequence);
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
