#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "runtime/base/check_range.h"
#include "runtime/policy/eviction_policy.h"

namespace foldkv {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

template <typename Enum>
Status check_enum(absl::string_view field, Enum value, Enum last) {
  return check_range(field, static_cast<int64_t>(value), 1, static_cast<int64_t>(last));
}

Status check_number(absl::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return argument_error(field, absl::StrCat(field, ": got ", value, ", expected ", low, " to ", high));
}

Status check_ratio(absl::string_view field, const Ratio& ratio) {
  if (ratio.denominator >= 1 && ratio.denominator <= 1'000'000'000 && ratio.numerator >= 0 &&
      ratio.numerator <= ratio.denominator) {
    return absl::OkStatus();
  }
  return argument_error(field,
                        absl::StrCat(field, ": got ", ratio.numerator, " / ", ratio.denominator, ", expected 0 to 1"));
}

Status refuse_if(bool wrong, absl::string_view field, absl::string_view reason) {
  return wrong ? argument_error(field, absl::StrCat(field, ": ", reason)) : absl::OkStatus();
}

template <typename Enum>
bool one_of(Enum value, std::initializer_list<Enum> values) {
  for (const Enum candidate : values) {
    if (candidate == value) return true;
  }
  return false;
}

bool sees_attention(Scorer scorer) { return !one_of(scorer, {Scorer::kNone, Scorer::kPosition}); }

Status check_scoring(const EvictionPolicy& policy) {
  const ScoringRules& scoring = policy.scoring;
  const double infinity = std::numeric_limits<double>::max();
  FOLDKV_RETURN_IF_ERROR(check_enum("scoring.scorer", scoring.scorer, Scorer::kExpectedAttention));
  FOLDKV_RETURN_IF_ERROR(check_enum("scoring.rows", scoring.rows, RowReduction::kNegatedBelow));
  FOLDKV_RETURN_IF_ERROR(check_number("scoring.gamma", scoring.gamma, 0.0, infinity));
  FOLDKV_RETURN_IF_ERROR(check_number("scoring.newest_row_weight", scoring.newest_row_weight, 1.0, infinity));
  FOLDKV_RETURN_IF_ERROR(check_range("scoring.voting_heads", scoring.voting_heads, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_range("scoring.future_tokens", scoring.future_tokens, 1, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(refuse_if(scoring.newest_row_weight != 1.0 && scoring.scorer != Scorer::kWindow,
                                   "scoring.newest_row_weight", "weighs the rows of a window, but none is observed"));
  FOLDKV_RETURN_IF_ERROR(refuse_if(scoring.voting_heads != 0 && !sees_attention(scoring.scorer), "scoring.voting_heads",
                                   "the scorer looks at no head"));
  return refuse_if(scoring.voting_heads != 0 && policy.selection.scope == SelectionScope::kHead, "scoring.voting_heads",
                   "some heads vote, so all heads must keep the same tokens");
}

Status check_reduction(const EvictionPolicy& policy) {
  const ReductionRules& reduction = policy.reduction;
  FOLDKV_RETURN_IF_ERROR(check_enum("reduction.pooling", reduction.pooling, Pooling::kMaximum));
  FOLDKV_RETURN_IF_ERROR(check_enum("reduction.heads", reduction.heads, HeadReduction::kSum));
  FOLDKV_RETURN_IF_ERROR(check_enum("reduction.weighting", reduction.weighting, ValueWeighting::kOutputNormL1));
  FOLDKV_RETURN_IF_ERROR(check_number("reduction.epsilon", reduction.epsilon, 0.0, std::numeric_limits<double>::max()));
  FOLDKV_RETURN_IF_ERROR(check_range("reduction.pool_width", reduction.pool_width, 1, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(refuse_if(reduction.pool_width % 2 == 0, "reduction.pool_width", "expected an odd number"));
  const bool scored = sees_attention(policy.scoring.scorer);
  FOLDKV_RETURN_IF_ERROR(
      refuse_if(!scored && reduction.pooling != Pooling::kNone, "reduction.pooling", "there are no scores to pool"));
  FOLDKV_RETURN_IF_ERROR(refuse_if(!scored && reduction.weighting != ValueWeighting::kNone, "reduction.weighting",
                                   "there are no scores to weigh"));
  return refuse_if(!scored && reduction.raise_to_mean, "reduction.raise_to_mean", "there are no scores to raise");
}

Status check_first_stage(const EvictionPolicy& policy) {
  const SelectionRules& selection = policy.selection;
  FOLDKV_RETURN_IF_ERROR(check_number("selection.first_stage_share", selection.first_stage_share, 0.0, 1.0));
  FOLDKV_RETURN_IF_ERROR(check_number("selection.first_stage_mass", selection.first_stage_mass, 0.0, 1.0));
  const bool weighted = policy.reduction.weighting != ValueWeighting::kNone;
  const absl::string_view reason = "a first stage needs weighted scores for the second";
  FOLDKV_RETURN_IF_ERROR(
      refuse_if(selection.first_stage_share > 0.0 && !weighted, "selection.first_stage_share", reason));
  FOLDKV_RETURN_IF_ERROR(
      refuse_if(selection.first_stage_mass > 0.0 && !weighted, "selection.first_stage_mass", reason));
  const bool staged = selection.first_stage_share > 0.0 || selection.first_stage_mass > 0.0;
  FOLDKV_RETURN_IF_ERROR(
      refuse_if(selection.first_stage_by_mean && !staged, "selection.first_stage_by_mean", "there is no first stage"));
  return refuse_if(selection.first_stage_share > 0.0 && selection.first_stage_mass > 0.0, "selection.first_stage_mass",
                   "there is a first_stage_share already");
}

Status check_kept_always(const EvictionPolicy& policy) {
  const SelectionRules& selection = policy.selection;
  FOLDKV_RETURN_IF_ERROR(check_range("selection.window_tokens", selection.window_tokens, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_ratio("selection.window_share", selection.window_share));
  FOLDKV_RETURN_IF_ERROR(check_range("selection.sink_tokens", selection.sink_tokens, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_range("selection.recent_tokens", selection.recent_tokens, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_ratio("selection.recent_share", selection.recent_share));
  const bool share = selection.window_share.numerator > 0;
  FOLDKV_RETURN_IF_ERROR(
      refuse_if(share && selection.window_tokens > 0, "selection.window_share", "there are window_tokens already"));
  FOLDKV_RETURN_IF_ERROR(refuse_if(selection.recent_share.numerator > 0 && selection.recent_tokens > 0,
                                   "selection.recent_share", "there are recent_tokens already"));
  const bool window = share || selection.window_tokens > 0;
  if (policy.scoring.scorer == Scorer::kWindow) {
    return refuse_if(!window, "selection.window_tokens", "the scorer observes a window, but it is 0");
  }
  return refuse_if(window, share ? "selection.window_share" : "selection.window_tokens",
                   "only the window scorer observes one; recent tokens are kept by recent_tokens");
}

Status check_selection(const EvictionPolicy& policy) {
  const SelectionRules& selection = policy.selection;
  FOLDKV_RETURN_IF_ERROR(check_enum("selection.scope", selection.scope, SelectionScope::kGroup));
  FOLDKV_RETURN_IF_ERROR(check_kept_always(policy));
  FOLDKV_RETURN_IF_ERROR(check_first_stage(policy));
  FOLDKV_RETURN_IF_ERROR(check_range("selection.interval", selection.interval, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(refuse_if(selection.interval > 0 && policy.scoring.scorer == Scorer::kNone,
                                   "selection.interval", "nothing is evicted"));
  // The next position is one for all.
  const bool equal = policy.budget.layers == LayerAllocator::kUniform && policy.budget.heads == HeadAllocator::kUniform;
  return refuse_if(selection.reindexed && !equal, "selection.reindexed",
                   "positions are numbered anew only where all layers and heads keep equally many tokens");
}

Status check_layer_allocator(const EvictionPolicy& policy, int64_t layers) {
  const BudgetRules& budget = policy.budget;
  FOLDKV_RETURN_IF_ERROR(check_enum("budget.layers", budget.layers, LayerAllocator::kCosine));
  FOLDKV_RETURN_IF_ERROR(check_range("budget.beta", budget.beta, 1, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.ripple_ratio", budget.ripple_ratio, 1.0, 1e9));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.ripple_gamma", budget.ripple_gamma, 1.0, 1e9));
  FOLDKV_RETURN_IF_ERROR(check_enum("budget.ripple_order", budget.ripple_order, RippleOrder::kNormalizeFirst));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.entropy_temperature", budget.entropy_temperature, 1e-9, 1e9));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.variance_temperature", budget.variance_temperature, 1e-9, 1e9));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.most_ratio", budget.most_ratio, 1.0, 65'536.0));
  FOLDKV_RETURN_IF_ERROR(check_range("budget.floor_tokens", budget.floor_tokens, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.layer_floor_share", budget.layer_floor_share, 0.0, 1.0));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.sharpness", budget.sharpness, 0.0, 1e9));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.decay", budget.decay, 0.0, 1.0));
  const auto numbers = std::ssize(budget.layer_numbers);
  FOLDKV_RETURN_IF_ERROR(refuse_if(budget.layers == LayerAllocator::kCustom && numbers == 0, "budget.layer_numbers",
                                   "custom weights of layers, but there are none"));
  FOLDKV_RETURN_IF_ERROR(refuse_if(numbers != 0 && layers != 0 && numbers != layers, "budget.layer_numbers",
                                   absl::StrCat("got ", numbers, " layers, the model has ", layers)));
  for (int64_t layer = 0; layer < numbers; ++layer) {
    FOLDKV_RETURN_IF_ERROR(refuse_if(!std::isfinite(budget.layer_numbers[static_cast<size_t>(layer)]),
                                     absl::StrCat("budget.layer_numbers[", layer, "]"), "not a finite number"));
  }
  FOLDKV_RETURN_IF_ERROR(refuse_if(budget.layers == LayerAllocator::kCake && policy.scoring.scorer != Scorer::kWindow,
                                   "budget.layers", "CAKE's preference comes from a window's attention"));
  const bool scores = one_of(budget.layers, {LayerAllocator::kLava, LayerAllocator::kDynamic});
  return refuse_if(scores && !sees_attention(policy.scoring.scorer), "budget.layers",
                   "budgets come from scores, but there are none");
}

Status check_head_allocator(const EvictionPolicy& policy) {
  FOLDKV_RETURN_IF_ERROR(check_enum("budget.heads", policy.budget.heads, HeadAllocator::kLava));
  FOLDKV_RETURN_IF_ERROR(check_number("budget.head_floor_share", policy.budget.head_floor_share, 0.0, 1.0));
  if (policy.budget.heads == HeadAllocator::kUniform) return absl::OkStatus();
  FOLDKV_RETURN_IF_ERROR(refuse_if(policy.selection.scope != SelectionScope::kHead, "budget.heads",
                                   "heads that keep the same tokens have one budget"));
  return refuse_if(!sees_attention(policy.scoring.scorer), "budget.heads",
                   "budgets come from scores, but there are none");
}

Status check_author_rounding(const EvictionPolicy& policy) {
  if (!policy.budget.author_rounding) return absl::OkStatus();
  const bool layers =
      !one_of(policy.budget.layers, {LayerAllocator::kUniform, LayerAllocator::kRipple, LayerAllocator::kCustom});
  FOLDKV_RETURN_IF_ERROR(refuse_if(!layers && policy.budget.heads != HeadAllocator::kAda, "budget.author_rounding",
                                   "the allocators have no rounding of their own"));
  return refuse_if(policy.selection.scope == SelectionScope::kGroup, "budget.author_rounding",
                   "no author rounds budgets of layer groups");
}

Status check_budget(const EvictionPolicy& policy) {
  const BudgetRules& budget = policy.budget;
  FOLDKV_RETURN_IF_ERROR(check_range("budget.tokens", budget.tokens, 0, kMostTokens));
  FOLDKV_RETURN_IF_ERROR(check_ratio("budget.keep_ratio", budget.keep_ratio));
  // A ratio of nothing is a budget too where what is kept always comes on top.
  const bool ratio = budget.keep_ratio.numerator > 0 || budget.ratio_of_unprotected;
  const bool tokens = budget.tokens > 0;
  FOLDKV_RETURN_IF_ERROR(refuse_if(ratio && tokens, "budget.keep_ratio", "there is a budget in tokens already"));
  if (policy.scoring.scorer == Scorer::kNone) {
    return refuse_if(ratio || tokens, "budget.tokens", "a budget, but nothing is evicted");
  }
  FOLDKV_RETURN_IF_ERROR(refuse_if(!ratio && !tokens && budget.layers != LayerAllocator::kCosine, "budget.tokens",
                                   "neither tokens nor a ratio to keep"));
  const SelectionRules& selection = policy.selection;
  const int64_t always = selection.sink_tokens + std::max(selection.window_tokens, selection.recent_tokens);
  return refuse_if(tokens && budget.tokens < always, "budget.tokens",
                   absl::StrCat("got ", budget.tokens, ", but ", always, " tokens are kept always"));
}

}  // namespace

Status check_policy(const EvictionPolicy& policy, int64_t layers) {
  FOLDKV_RETURN_IF_ERROR(check_scoring(policy));
  FOLDKV_RETURN_IF_ERROR(check_reduction(policy));
  FOLDKV_RETURN_IF_ERROR(check_selection(policy));
  FOLDKV_RETURN_IF_ERROR(check_layer_allocator(policy, layers));
  FOLDKV_RETURN_IF_ERROR(check_head_allocator(policy));
  FOLDKV_RETURN_IF_ERROR(check_author_rounding(policy));
  return check_budget(policy);
}

}  // namespace foldkv
