#include "backends/reference/attend.h"

#include <algorithm>

#include "backends/reference/attention.h"
#include "backends/reference/layer_view.h"
#include "backends/reference/scratch.h"

namespace foldkv::backend::reference {
namespace {

struct Arrays {
  TokenArrays tokens;
  double* query = nullptr;        // [query_heads][head_size]
  double* context = nullptr;      // [query_heads][head_size]
  double* log_sum_exp = nullptr;  // [query_heads]
  AttentionScratch attention;
};

Arrays place_arrays(const AttendShape& shape, Scratch& scratch) {
  Arrays arrays;
  arrays.tokens = TokenArrays::place(shape, true, scratch);
  arrays.query = scratch.take<double>(shape.query_heads * shape.head_size);
  arrays.context = scratch.take<double>(shape.query_heads * shape.head_size);
  arrays.log_sum_exp = scratch.take<double>(shape.query_heads);
  arrays.attention.weights = scratch.take<double>(shape.total_tokens);
  arrays.attention.latent_sum = scratch.take<double>(shape.value_latent_width);
  return arrays;
}

// One view at a time: its keys are rebuilt and rotated, its values decoded, before any query looks at them.
void attend_sequence(const AttendRequest& request, const AttendSequence& sequence) {
  const LayerView view = layer_view(request.rules, request.exact_layout, request.latent, sequence);
  const AttentionRules& rules = view.rules;
  const int64_t row_width = rules.query_heads * rules.head_size;
  Scratch scratch(request.workspace);
  const Arrays arrays = place_arrays(shape_of(view), scratch);
  const VisibleTokens tokens = load_tokens(view, arrays.tokens);
  for (int64_t r = 0; r < sequence.row_count; ++r) {
    const int64_t first = (sequence.first_row + r) * request.rules.query_heads + view.first_query_head;
    std::copy_n(request.queries + first * rules.head_size, row_width, arrays.query);
    attend_row(rules, tokens, arrays.query, sequence.query_positions[r], arrays.attention, arrays.context,
               arrays.log_sum_exp);
    for (int64_t i = 0; i < row_width; ++i) {
      request.context[first * rules.head_size + i] = static_cast<float>(arrays.context[i]);
    }
    if (request.log_sum_exp == nullptr) continue;
    for (int64_t head = 0; head < rules.query_heads; ++head) {
      request.log_sum_exp[first + head] = static_cast<float>(arrays.log_sum_exp[head]);
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
