#include "abi/read_eviction.h"

#include <string>
#include <utility>

#include "abi/check_place.h"
#include "abi/read_struct.h"
#include "absl/strings/match.h"

namespace foldkv::abi {
namespace {

constexpr char kArgument[] = "options.eviction";

std::string field(absl::string_view name) { return absl::StrCat(kArgument, ".", name); }

// 0 stands for the first enumerator.
template <typename Enum>
Status read_enum(int32_t value, absl::string_view name, int32_t last, Enum& target) {
  if (value < 0 || value > last) {
    return argument_error(field(name), absl::StrCat("is ", value, ", expected 0 to ", last));
  }
  if (value != 0) target = static_cast<Enum>(value);
  return absl::OkStatus();
}

Status read_flag(int32_t value, absl::string_view name, bool& target) {
  if (value != 0 && value != 1) return argument_error(field(name), absl::StrCat("is ", value, ", expected 0 or 1"));
  target = value == 1;
  return absl::OkStatus();
}

// 0 stands for the default.
template <typename Number, typename Target>
void read_number(Number value, Target& target) {
  if (value != Number{}) target = static_cast<Target>(value);
}

Status read_share(double value, absl::string_view name, Ratio& target) {
  const StatusOr<Ratio> ratio = make_ratio(name, value);
  if (!ratio.ok()) return with_argument(ratio.status(), field(name));
  target = *ratio;
  return absl::OkStatus();
}

Status read_scoring(const foldkv_eviction& source, ScoringRules& scoring) {
  FOLDKV_RETURN_IF_ERROR(read_enum(source.scorer, "scorer", FOLDKV_SCORER_EXPECTED_ATTENTION, scoring.scorer));
  FOLDKV_RETURN_IF_ERROR(read_enum(source.row_reduction, "row_reduction", FOLDKV_ROWS_NEGATED_BELOW, scoring.rows));
  scoring.gamma = source.gamma;
  read_number(source.newest_row_weight, scoring.newest_row_weight);
  scoring.voting_heads = source.voting_heads;
  read_number(source.future_tokens, scoring.future_tokens);
  bool without_covariance = false;
  FOLDKV_RETURN_IF_ERROR(read_flag(source.without_covariance, "without_covariance", without_covariance));
  scoring.covariance = !without_covariance;
  return absl::OkStatus();
}

Status read_reduction(const foldkv_eviction& source, ReductionRules& reduction) {
  FOLDKV_RETURN_IF_ERROR(read_enum(source.pooling, "pooling", FOLDKV_POOLING_MAXIMUM, reduction.pooling));
  read_number(source.pool_width, reduction.pool_width);
  bool pool_after_heads = false;
  FOLDKV_RETURN_IF_ERROR(read_flag(source.pool_after_heads, "pool_after_heads", pool_after_heads));
  reduction.pool_before_heads = !pool_after_heads;
  FOLDKV_RETURN_IF_ERROR(read_flag(source.pool_over_protected, "pool_over_protected", reduction.pool_over_protected));
  FOLDKV_RETURN_IF_ERROR(read_enum(source.head_reduction, "head_reduction", FOLDKV_HEADS_SUM, reduction.heads));
  FOLDKV_RETURN_IF_ERROR(read_flag(source.raise_to_mean, "raise_to_mean", reduction.raise_to_mean));
  FOLDKV_RETURN_IF_ERROR(read_enum(source.weighting, "weighting", FOLDKV_WEIGHTING_OUTPUT_L1, reduction.weighting));
  reduction.epsilon = source.epsilon;
  return absl::OkStatus();
}

Status read_selection(const foldkv_eviction& source, SelectionRules& selection) {
  FOLDKV_RETURN_IF_ERROR(read_enum(source.scope, "scope", FOLDKV_SCOPE_GROUP, selection.scope));
  selection.first_stage_share = source.first_stage_share;
  selection.first_stage_mass = source.first_stage_mass;
  FOLDKV_RETURN_IF_ERROR(read_flag(source.first_stage_by_mean, "first_stage_by_mean", selection.first_stage_by_mean));
  selection.window_tokens = source.window_tokens;
  FOLDKV_RETURN_IF_ERROR(read_share(source.window_share, "window_share", selection.window_share));
  selection.sink_tokens = source.sink_tokens;
  selection.recent_tokens = source.recent_tokens;
  FOLDKV_RETURN_IF_ERROR(read_share(source.recent_share, "recent_share", selection.recent_share));
  FOLDKV_RETURN_IF_ERROR(read_flag(source.reindexed, "reindexed", selection.reindexed));
  selection.interval = source.interval;
  return absl::OkStatus();
}

Status read_budget(const foldkv_eviction& source, BudgetRules& budget) {
  budget.tokens = source.budget_tokens;
  FOLDKV_RETURN_IF_ERROR(read_share(source.keep_ratio, "keep_ratio", budget.keep_ratio));
  FOLDKV_RETURN_IF_ERROR(read_flag(source.ratio_of_unprotected, "ratio_of_unprotected", budget.ratio_of_unprotected));
  FOLDKV_RETURN_IF_ERROR(read_enum(source.layer_allocator, "layer_allocator", FOLDKV_LAYERS_COSINE, budget.layers));
  read_number(source.beta, budget.beta);
  read_number(source.ripple_ratio, budget.ripple_ratio);
  read_number(source.ripple_gamma, budget.ripple_gamma);
  bool normalize_first = false;
  FOLDKV_RETURN_IF_ERROR(read_flag(source.ripple_normalize_first, "ripple_normalize_first", normalize_first));
  if (normalize_first) budget.ripple_order = RippleOrder::kNormalizeFirst;
  read_number(source.entropy_temperature, budget.entropy_temperature);
  read_number(source.variance_temperature, budget.variance_temperature);
  read_number(source.most_ratio, budget.most_ratio);
  read_number(source.floor_tokens, budget.floor_tokens);
  read_number(source.sharpness, budget.sharpness);
  read_number(source.decay, budget.decay);
  FOLDKV_RETURN_IF_ERROR(read_enum(source.head_allocator, "head_allocator", FOLDKV_HEAD_BUDGETS_LAVA, budget.heads));
  read_number(source.head_floor_share, budget.head_floor_share);
  if (source.head_floor_share == -1.0) budget.head_floor_share = 0.0;
  return read_flag(source.author_rounding, "author_rounding", budget.author_rounding);
}

Status read_layers(const foldkv_eviction& source, const Model& model, SequenceEviction& eviction) {
  if (source.layer_number_count < 0 || (source.layer_number_count > 0 && source.layer_numbers == nullptr)) {
    return argument_error(field("layer_number_count"),
                          absl::StrCat("is ", source.layer_number_count, ", expected 0, or that of layer_numbers"));
  }
  if (source.layer_numbers != nullptr) {
    eviction.policy.budget.layer_numbers.assign(source.layer_numbers, source.layer_numbers + source.layer_number_count);
  }
  if (source.layers_per_group < 0) {
    return argument_error(field("layers_per_group"),
                          absl::StrCat("is ", source.layers_per_group, ", expected 0 or more"));
  }
  read_number(source.layers_per_group, eviction.layers_per_group);
  if (source.exempt_layers == nullptr) return absl::OkStatus();
  eviction.exempt.resize(static_cast<size_t>(model.layer_count()));
  for (int32_t index = 0; index < source.exempt_layer_count; ++index) {
    const int32_t layer = source.exempt_layers[index];
    FOLDKV_RETURN_IF_ERROR(check_layer(layer, field(absl::StrCat("exempt_layers[", index, "]")), model.layer_count()));
    eviction.exempt[static_cast<size_t>(layer)] = 1;
  }
  return absl::OkStatus();
}

Status read_head_ranking(const foldkv_eviction& source, const Model& model, SequenceEviction& eviction) {
  if (source.head_ranking == nullptr || source.voting_heads <= 0) return absl::OkStatus();
  const int64_t expected = model.layer_count() * source.voting_heads;
  if (source.head_ranking_count != expected) {
    return argument_error(field("head_ranking_count"), absl::StrCat("is ", source.head_ranking_count, ", expected ",
                                                                    expected, ": voting_heads for each layer"));
  }
  const int32_t* heads = source.head_ranking;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer, heads += source.voting_heads) {
    for (int32_t index = 0; index < source.voting_heads; ++index) {
      if (heads[index] >= 0 && heads[index] < model.layer(layer).query_heads) continue;
      return argument_error(field(absl::StrCat("head_ranking[", layer * source.voting_heads + index, "]")),
                            absl::StrCat("is ", heads[index], ", expected 0 to ", model.layer(layer).query_heads - 1));
    }
    eviction.voting_heads.emplace_back(heads, heads + source.voting_heads);
  }
  return absl::OkStatus();
}

Status read_pinned(const foldkv_eviction& source, SequenceEviction& eviction) {
  if (source.pinned_count < 0 || (source.pinned_count > 0 && source.pinned == nullptr)) {
    return argument_error(field("pinned_count"),
                          absl::StrCat("is ", source.pinned_count, ", expected 0, or that of pinned"));
  }
  for (int64_t index = 0; index < source.pinned_count; ++index) {
    const foldkv_position_range& range = source.pinned[index];
    if (range.first < 0 || range.end <= range.first) {
      return argument_error(field(absl::StrCat("pinned[", index, "]")),
                            absl::StrCat("is [", range.first, ", ", range.end, "), expected a range from 0 on"));
    }
    eviction.pinned.push_back({range.first, range.end});
  }
  return absl::OkStatus();
}

// Names inside and in the struct, where they differ by more than the part.
constexpr std::pair<const char*, const char*> kFields[] = {
    {"scoring.rows", "row_reduction"},  {"reduction.heads", "head_reduction"},
    {"budget.tokens", "budget_tokens"}, {"budget.layers", "layer_allocator"},
    {"budget.heads", "head_allocator"}, {"budget.ripple_order", "ripple_normalize_first"},
};

}  // namespace

StatusOr<std::shared_ptr<const SequenceEviction>> read_eviction(const foldkv_eviction* source, const Model& model) {
  if (source == nullptr) return nullptr;
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_eviction eviction, read_struct(source, kArgument));
  auto result = std::make_shared<SequenceEviction>();
  FOLDKV_RETURN_IF_ERROR(read_scoring(eviction, result->policy.scoring));
  FOLDKV_RETURN_IF_ERROR(read_reduction(eviction, result->policy.reduction));
  FOLDKV_RETURN_IF_ERROR(read_selection(eviction, result->policy.selection));
  FOLDKV_RETURN_IF_ERROR(read_budget(eviction, result->policy.budget));
  FOLDKV_RETURN_IF_ERROR(read_layers(eviction, model, *result));
  FOLDKV_RETURN_IF_ERROR(read_head_ranking(eviction, model, *result));
  FOLDKV_RETURN_IF_ERROR(read_pinned(eviction, *result));
  FOLDKV_RETURN_IF_ERROR(with_public_field(check_policy(result->policy, model.layer_count())));
  if (result->policy.scoring.scorer == Scorer::kNone) return nullptr;
  return result;
}

foldkv_eviction public_eviction(const EvictionPolicy& policy) {
  const auto share = [](const Ratio& ratio) {
    return static_cast<double>(ratio.numerator) / static_cast<double>(ratio.denominator);
  };
  foldkv_eviction result{};
  result.scorer = static_cast<int32_t>(policy.scoring.scorer);
  result.row_reduction = static_cast<int32_t>(policy.scoring.rows);
  result.pooling = static_cast<int32_t>(policy.reduction.pooling);
  result.pool_width = static_cast<int32_t>(policy.reduction.pool_width);
  result.pool_after_heads = policy.reduction.pool_before_heads ? 0 : 1;
  result.pool_over_protected = policy.reduction.pool_over_protected ? 1 : 0;
  result.head_reduction = static_cast<int32_t>(policy.reduction.heads);
  result.raise_to_mean = policy.reduction.raise_to_mean ? 1 : 0;
  result.weighting = static_cast<int32_t>(policy.reduction.weighting);
  result.scope = static_cast<int32_t>(policy.selection.scope);
  result.layer_allocator = static_cast<int32_t>(policy.budget.layers);
  result.head_allocator = static_cast<int32_t>(policy.budget.heads);
  result.window_tokens = static_cast<int32_t>(policy.selection.window_tokens);
  result.sink_tokens = static_cast<int32_t>(policy.selection.sink_tokens);
  result.recent_tokens = static_cast<int32_t>(policy.selection.recent_tokens);
  result.interval = static_cast<int32_t>(policy.selection.interval);
  result.reindexed = policy.selection.reindexed ? 1 : 0;
  result.first_stage_by_mean = policy.selection.first_stage_by_mean ? 1 : 0;
  result.ratio_of_unprotected = policy.budget.ratio_of_unprotected ? 1 : 0;
  result.author_rounding = policy.budget.author_rounding ? 1 : 0;
  result.voting_heads = static_cast<int32_t>(policy.scoring.voting_heads);
  result.future_tokens = static_cast<int32_t>(policy.scoring.future_tokens);
  result.without_covariance = policy.scoring.covariance ? 0 : 1;
  result.budget_tokens = policy.budget.tokens;
  result.keep_ratio = share(policy.budget.keep_ratio);
  result.window_share = share(policy.selection.window_share);
  result.recent_share = share(policy.selection.recent_share);
  result.gamma = policy.scoring.gamma;
  result.newest_row_weight = policy.scoring.newest_row_weight;
  result.epsilon = policy.reduction.epsilon;
  result.first_stage_share = policy.selection.first_stage_share;
  result.first_stage_mass = policy.selection.first_stage_mass;
  result.beta = static_cast<double>(policy.budget.beta);
  result.ripple_ratio = policy.budget.ripple_ratio;
  result.ripple_gamma = policy.budget.ripple_gamma;
  result.entropy_temperature = policy.budget.entropy_temperature;
  result.variance_temperature = policy.budget.variance_temperature;
  result.most_ratio = policy.budget.most_ratio;
  result.sharpness = policy.budget.sharpness;
  result.decay = policy.budget.decay;
  result.head_floor_share = policy.budget.head_floor_share == 0.0 ? -1.0 : policy.budget.head_floor_share;
  result.floor_tokens = static_cast<int32_t>(policy.budget.floor_tokens);
  result.ripple_normalize_first = policy.budget.ripple_order == RippleOrder::kNormalizeFirst ? 1 : 0;
  return result;
}

Status with_public_field(const Status& status) {
  if (status.ok()) return status;
  const std::string inside = argument_of(status);
  for (const auto& [part, name] : kFields) {
    if (inside == part) return with_argument(status, field(name));
  }
  for (const absl::string_view part : {"scoring.", "reduction.", "selection.", "budget."}) {
    if (absl::StartsWith(inside, part)) return with_argument(status, field(inside.substr(part.size())));
  }
  return status;
}

}  // namespace foldkv::abi
