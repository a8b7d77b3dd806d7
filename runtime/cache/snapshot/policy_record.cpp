#include "runtime/cache/snapshot/policy_record.h"

#include <limits>
#include <utility>

#include "runtime/profile/read_numbers.h"

namespace foldkv {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

std::unique_ptr<file::SavedRatioT> record(const Ratio& ratio) {
  auto saved = std::make_unique<file::SavedRatioT>();
  saved->numerator = ratio.numerator;
  saved->denominator = ratio.denominator;
  return saved;
}

std::unique_ptr<file::SavedScoringT> record(const ScoringRules& rules) {
  auto saved = std::make_unique<file::SavedScoringT>();
  saved->scorer = static_cast<int32_t>(rules.scorer);
  saved->rows = static_cast<int32_t>(rules.rows);
  saved->gamma = rules.gamma;
  saved->newest_row_weight = rules.newest_row_weight;
  saved->voting_heads = rules.voting_heads;
  saved->future_tokens = rules.future_tokens;
  saved->covariance = rules.covariance;
  return saved;
}

std::unique_ptr<file::SavedReductionT> record(const ReductionRules& rules) {
  auto saved = std::make_unique<file::SavedReductionT>();
  saved->pooling = static_cast<int32_t>(rules.pooling);
  saved->pool_width = rules.pool_width;
  saved->pool_before_heads = rules.pool_before_heads;
  saved->pool_over_protected = rules.pool_over_protected;
  saved->heads = static_cast<int32_t>(rules.heads);
  saved->raise_to_mean = rules.raise_to_mean;
  saved->weighting = static_cast<int32_t>(rules.weighting);
  saved->epsilon = rules.epsilon;
  return saved;
}

std::unique_ptr<file::SavedSelectionT> record(const SelectionRules& rules) {
  auto saved = std::make_unique<file::SavedSelectionT>();
  saved->scope = static_cast<int32_t>(rules.scope);
  saved->first_stage_share = rules.first_stage_share;
  saved->first_stage_mass = rules.first_stage_mass;
  saved->first_stage_by_mean = rules.first_stage_by_mean;
  saved->window_tokens = rules.window_tokens;
  saved->window_share = record(rules.window_share);
  saved->sink_tokens = rules.sink_tokens;
  saved->recent_tokens = rules.recent_tokens;
  saved->recent_share = record(rules.recent_share);
  saved->reindexed = rules.reindexed;
  saved->interval = rules.interval;
  return saved;
}

std::unique_ptr<file::SavedBudgetT> record(const BudgetRules& rules) {
  auto saved = std::make_unique<file::SavedBudgetT>();
  saved->tokens = rules.tokens;
  saved->keep_ratio = record(rules.keep_ratio);
  saved->ratio_of_unprotected = rules.ratio_of_unprotected;
  saved->layers = static_cast<int32_t>(rules.layers);
  saved->layer_numbers = rules.layer_numbers;
  saved->beta = rules.beta;
  saved->ripple_ratio = rules.ripple_ratio;
  saved->ripple_gamma = rules.ripple_gamma;
  saved->ripple_order = static_cast<int32_t>(rules.ripple_order);
  saved->entropy_temperature = rules.entropy_temperature;
  saved->variance_temperature = rules.variance_temperature;
  saved->most_ratio = rules.most_ratio;
  saved->floor_tokens = rules.floor_tokens;
  saved->layer_floor_share = rules.layer_floor_share;
  saved->sharpness = rules.sharpness;
  saved->decay = rules.decay;
  saved->heads = static_cast<int32_t>(rules.heads);
  saved->head_floor_share = rules.head_floor_share;
  saved->author_rounding = rules.author_rounding;
  return saved;
}

std::unique_ptr<file::SavedEvictionT> record(const SequenceEviction& eviction) {
  auto saved = std::make_unique<file::SavedEvictionT>();
  saved->name = eviction.policy.name;
  saved->scoring = record(eviction.policy.scoring);
  saved->reduction = record(eviction.policy.reduction);
  saved->selection = record(eviction.policy.selection);
  saved->budget = record(eviction.policy.budget);
  saved->layers_per_group = eviction.layers_per_group;
  for (const PositionRange& range : eviction.pinned) {
    saved->pinned_first.push_back(range.first);
    saved->pinned_end.push_back(range.end);
  }
  saved->exempt = eviction.exempt;
  for (const std::vector<int32_t>& heads : eviction.voting_heads) {
    saved->voting_heads.push_back(std::make_unique<file::SavedHeadsT>());
    saved->voting_heads.back()->heads = heads;
  }
  return saved;
}

Ratio read(const file::SavedRatio& saved) { return {saved.numerator(), saved.denominator()}; }

ScoringRules read(const file::SavedScoring& saved) {
  ScoringRules rules;
  rules.scorer = static_cast<Scorer>(saved.scorer());
  rules.rows = static_cast<RowReduction>(saved.rows());
  rules.gamma = saved.gamma();
  rules.newest_row_weight = saved.newest_row_weight();
  rules.voting_heads = saved.voting_heads();
  rules.future_tokens = saved.future_tokens();
  rules.covariance = saved.covariance();
  return rules;
}

ReductionRules read(const file::SavedReduction& saved) {
  ReductionRules rules;
  rules.pooling = static_cast<Pooling>(saved.pooling());
  rules.pool_width = saved.pool_width();
  rules.pool_before_heads = saved.pool_before_heads();
  rules.pool_over_protected = saved.pool_over_protected();
  rules.heads = static_cast<HeadReduction>(saved.heads());
  rules.raise_to_mean = saved.raise_to_mean();
  rules.weighting = static_cast<ValueWeighting>(saved.weighting());
  rules.epsilon = saved.epsilon();
  return rules;
}

SelectionRules read(const file::SavedSelection& saved) {
  SelectionRules rules;
  rules.scope = static_cast<SelectionScope>(saved.scope());
  rules.first_stage_share = saved.first_stage_share();
  rules.first_stage_mass = saved.first_stage_mass();
  rules.first_stage_by_mean = saved.first_stage_by_mean();
  rules.window_tokens = saved.window_tokens();
  rules.window_share = read(*saved.window_share());
  rules.sink_tokens = saved.sink_tokens();
  rules.recent_tokens = saved.recent_tokens();
  rules.recent_share = read(*saved.recent_share());
  rules.reindexed = saved.reindexed();
  rules.interval = saved.interval();
  return rules;
}

BudgetRules read(const file::SavedBudget& saved) {
  BudgetRules rules;
  rules.tokens = saved.tokens();
  rules.keep_ratio = read(*saved.keep_ratio());
  rules.ratio_of_unprotected = saved.ratio_of_unprotected();
  rules.layers = static_cast<LayerAllocator>(saved.layers());
  rules.layer_numbers = read_numbers(*saved.layer_numbers());
  rules.beta = saved.beta();
  rules.ripple_ratio = saved.ripple_ratio();
  rules.ripple_gamma = saved.ripple_gamma();
  rules.ripple_order = static_cast<RippleOrder>(saved.ripple_order());
  rules.entropy_temperature = saved.entropy_temperature();
  rules.variance_temperature = saved.variance_temperature();
  rules.most_ratio = saved.most_ratio();
  rules.floor_tokens = saved.floor_tokens();
  rules.layer_floor_share = saved.layer_floor_share();
  rules.sharpness = saved.sharpness();
  rules.decay = saved.decay();
  rules.heads = static_cast<HeadAllocator>(saved.heads());
  rules.head_floor_share = saved.head_floor_share();
  rules.author_rounding = saved.author_rounding();
  return rules;
}

Status wrong(absl::string_view what) { return corrupt_error(absl::StrCat("the snapshot's ", what, " cannot be")); }

Status read_pinned(const file::SavedEviction& saved, SequenceEviction& eviction) {
  if (saved.pinned_first()->size() != saved.pinned_end()->size()) return wrong("pinned positions");
  for (flatbuffers::uoffset_t index = 0; index < saved.pinned_first()->size(); ++index) {
    const PositionRange range{saved.pinned_first()->Get(index), saved.pinned_end()->Get(index)};
    if (range.first < 0 || range.end <= range.first) return wrong("pinned positions");
    eviction.pinned.push_back(range);
  }
  return absl::OkStatus();
}

Status read_voting_heads(const file::SavedEviction& saved, const Model& model, SequenceEviction& eviction) {
  if (saved.voting_heads()->size() == 0) return absl::OkStatus();
  if (saved.voting_heads()->size() != model.layer_count()) return wrong("voting heads");
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    const auto* heads = saved.voting_heads()->Get(static_cast<flatbuffers::uoffset_t>(layer))->heads();
    if (heads->size() > model.layer(layer).query_heads) return wrong("voting heads");
    for (const int32_t head : *heads) {
      if (head < 0 || head >= model.layer(layer).query_heads) return wrong("voting heads");
    }
    eviction.voting_heads.emplace_back(heads->begin(), heads->end());
  }
  return absl::OkStatus();
}

StatusOr<std::shared_ptr<const SequenceEviction>> read_eviction(const file::SavedEviction& saved, const Model& model) {
  auto eviction = std::make_shared<SequenceEviction>();
  EvictionPolicy& policy = eviction->policy;
  policy.name = read_text(saved.name());
  policy.scoring = read(*saved.scoring());
  policy.reduction = read(*saved.reduction());
  policy.selection = read(*saved.selection());
  policy.budget = read(*saved.budget());
  const Status checked = check_policy(policy, model.layer_count());
  if (!checked.ok()) return corrupt_error(absl::StrCat("the snapshot's eviction policy: ", checked.message()));
  if (policy.scoring.scorer == Scorer::kNone) return wrong("scorer");
  if (saved.layers_per_group() < 1 || saved.layers_per_group() > kMostTokens) return wrong("layers_per_group");
  eviction->layers_per_group = saved.layers_per_group();
  if (saved.exempt()->size() != 0 && saved.exempt()->size() != model.layer_count()) return wrong("exempt layers");
  eviction->exempt.assign(saved.exempt()->begin(), saved.exempt()->end());
  FOLDKV_RETURN_IF_ERROR(read_pinned(saved, *eviction));
  FOLDKV_RETURN_IF_ERROR(read_voting_heads(saved, model, *eviction));
  return std::shared_ptr<const SequenceEviction>(std::move(eviction));
}

}  // namespace

file::SavedPolicyT record_policy(const SequencePolicy& policy) {
  file::SavedPolicyT saved;
  saved.format = static_cast<int32_t>(policy.format);
  saved.sink_tokens = policy.sink_tokens;
  saved.recent_tokens = policy.recent_tokens;
  saved.fold_tokens = policy.fold_tokens.value_or(0);
  saved.mean = static_cast<int32_t>(policy.mean);
  if (policy.eviction != nullptr) saved.eviction = record(*policy.eviction);
  saved.arithmetic = static_cast<int32_t>(policy.arithmetic);
  return saved;
}

StatusOr<SequencePolicy> read_policy(const file::SavedPolicy& saved, const Model& model) {
  SequencePolicy policy;
  if (saved.format() < static_cast<int32_t>(NumberFormat::kF32) ||
      saved.format() > static_cast<int32_t>(NumberFormat::kBF16)) {
    return wrong("number format");
  }
  policy.format = static_cast<NumberFormat>(saved.format());
  for (const auto& [count, place] :
       {std::pair{saved.sink_tokens(), &policy.sink_tokens}, std::pair{saved.recent_tokens(), &policy.recent_tokens}}) {
    if (count < 0 || count > kMostTokens) return wrong("number of exact tokens");
    *place = count;
  }
  if (saved.fold_tokens() < 0 || saved.fold_tokens() > kMostTokens) return wrong("fold");
  policy.fold_tokens = saved.fold_tokens() == 0 ? std::nullopt : std::optional<int64_t>(saved.fold_tokens());
  if (saved.mean() != static_cast<int32_t>(MeanSource::kSequence) &&
      saved.mean() != static_cast<int32_t>(MeanSource::kProfile)) {
    return wrong("mean");
  }
  policy.mean = static_cast<MeanSource>(saved.mean());
  if (saved.arithmetic() < static_cast<int32_t>(backend::Arithmetic::kExact) ||
      saved.arithmetic() > static_cast<int32_t>(backend::Arithmetic::kFast)) {
    return wrong("arithmetic");
  }
  policy.arithmetic = static_cast<backend::Arithmetic>(saved.arithmetic());
  if (saved.eviction() != nullptr) {
    FOLDKV_ASSIGN_OR_RETURN(policy.eviction, read_eviction(*saved.eviction(), model));
  }
  return policy;
}

}  // namespace foldkv
