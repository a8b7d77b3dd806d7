#include "backends/reference/score.h"

#include <algorithm>
#include <cmath>

#include "backends/interface/check_score.h"
#include "backends/reference/layer_view.h"

namespace foldkv::backend::reference {
namespace {

struct Arrays {
  TokenArrays tokens;
  double* query = nullptr;    // [head_size]
  double* weights = nullptr;  // [tokens], of one row and list; kInvisible: the row does not see the token
};

Arrays place_arrays(const AttendShape& shape, Scratch& scratch) {
  Arrays arrays;
  arrays.tokens = TokenArrays::place(shape, false, scratch);
  arrays.query = scratch.take<double>(shape.head_size);
  arrays.weights = scratch.take<double>(shape.total_tokens);
  return arrays;
}

// The query heads of the view that one list takes together.
struct ListHeads {
  int64_t first = 0;
  int64_t count = 0;
};

ListHeads heads_of_list(const ScoreRequest& request, const AttentionRules& rules, int64_t list) {
  const int64_t group = rules.query_heads / rules.kv_heads;
  switch (request.heads) {
    case ScoreHeads::kQueryHeads: return {list, 1};
    case ScoreHeads::kGroupMean:
    case ScoreHeads::kGroupMaximum: return {list * group, group};
    case ScoreHeads::kAllHeads: break;
  }
  return {0, rules.query_heads};
}

// Takes the weight of one head to those of the heads before it.
void take_head(ScoreHeads heads, double weight, double& weights) {
  const double before = std::max(weights, 0.0);
  weights = heads == ScoreHeads::kGroupMaximum ? std::max(before, weight) : before + weight;
}

void weigh_list(const ScoreRequest& request, const LayerView& view, const VisibleTokens& tokens, int64_t row,
                const ListHeads& heads, const Arrays& arrays) {
  const AttentionRules& rules = view.rules;
  const int64_t group = rules.query_heads / rules.kv_heads;
  std::fill_n(arrays.weights, tokens.count(), kInvisible);
  for (int64_t head = heads.first; head < heads.first + heads.count; ++head) {
    const int64_t place =
        (view.sequence.first_row + row) * request.rules.query_heads + view.first_query_head + head;
    const auto log_sum_exp = static_cast<double>(request.log_sum_exp[place]);
    if (log_sum_exp == kInvisible) continue;
    std::copy_n(request.queries + place * rules.head_size, rules.head_size, arrays.query);
    for (int64_t t = 0; t < tokens.count(); ++t) {
      const double logit =
          logit_of(rules, tokens, arrays.query, view.sequence.query_positions[row], head / group, t);
      if (logit != kInvisible) take_head(request.heads, std::exp(logit - log_sum_exp), arrays.weights[t]);
    }
  }
  if (request.heads != ScoreHeads::kGroupMean) return;
  for (int64_t t = 0; t < tokens.count(); ++t) arrays.weights[t] /= static_cast<double>(heads.count);
}

void add(double number, float& sum) { sum = static_cast<float>(static_cast<double>(sum) + number); }

// One row's weights to what the rows before it left.
void add_row(const ScoreRequest& request, int64_t row, int64_t list, const double* weights, int64_t tokens) {
  const double factor = request.row_weights == nullptr ? 1.0 : static_cast<double>(request.row_weights[row]);
  for (int64_t t = 0; t < tokens; ++t) {
    const double weight = weights[t];
    if (weight == kInvisible) continue;
    const int64_t place = list * request.list_stride + t;
    if (request.sums != nullptr) add(factor * weight, request.sums[place]);
    if (request.squares != nullptr) add(weight * weight, request.squares[place]);
    if (request.maxima != nullptr) request.maxima[place] = std::max(request.maxima[place], static_cast<float>(weight));
    if (request.below != nullptr && weight < static_cast<double>(request.thresholds[row])) {
      add(1.0, request.below[place]);
    }
    if (request.entropies != nullptr) add(-weight * std::log(weight + 1e-10), request.entropies[place]);
  }
}

}  // namespace

int64_t score_workspace(const AttendShape& shape) {
  Scratch scratch(nullptr);
  (void)place_arrays(shape, scratch);
  return scratch.used();
}

Status score(const ScoreRequest& request) {
  FOLDKV_RETURN_IF_ERROR(check_score(request));
  const LayerView view = layer_view(request.rules, request.exact_layout, request.latent, request.sequence);
  Scratch scratch(request.workspace);
  const Arrays arrays = place_arrays(shape_of(view), scratch);
  const VisibleTokens tokens = load_tokens(view, arrays.tokens);
  for (int64_t row = 0; row < request.sequence.row_count; ++row) {
    for (int64_t list = 0; list < request.lists(); ++list) {
      weigh_list(request, view, tokens, row, heads_of_list(request, view.rules, list), arrays);
      add_row(request, row, list, arrays.weights, tokens.count());
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
