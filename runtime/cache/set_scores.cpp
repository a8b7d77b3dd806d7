#include "runtime/cache/set_scores.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/cache/forecast_scores.h"
#include "runtime/cache/token_pages.h"
#include "runtime/cache/value_norms.h"
#include "runtime/cache/window_statistics.h"
#include "runtime/policy/cake_allocation.h"
#include "runtime/policy/entropy_allocation.h"
#include "runtime/policy/joint_allocation.h"
#include "runtime/policy/two_stage_selection.h"

namespace foldkv {
namespace {

// One list of a table, its range of tokens.
ScoreTable list_of(const ScoreTable& table, int64_t list) {
  ScoreTable one(1, table.tokens);
  const std::span<const double> source = table.head(list);
  std::copy(source.begin(), source.end(), one.scores.begin());
  return one;
}

Status add_list(ScoreTable& sum, ScoreTable list) {
  if (sum.heads == 0) {
    sum = std::move(list);
    return absl::OkStatus();
  }
  const ScoreTable tables[] = {std::move(sum), std::move(list)};
  FOLDKV_ASSIGN_OR_RETURN(sum, add_layers(tables));
  return absl::OkStatus();
}

bool looks_at_window(Scorer scorer) { return scorer == Scorer::kWindow || scorer == Scorer::kLastRow; }

}  // namespace

TokenRange SetScores::pooled_range(int64_t tokens) const {
  if (policy().reduction.pool_over_protected) return {0, tokens};
  const PolicyCounts counts = count_policy_tokens(policy(), tokens);
  return {counts.sinks, std::max<int64_t>(0, counts.competing())};
}

Status SetScores::compute(const std::vector<bool>& due) {
  sets_.resize(due.size());
  if (moment_.prompt_ends && looks_at_window(policy().scoring.scorer)) return observe_windows();
  for (size_t set = 0; set < due.size(); ++set) {
    if (due[set]) FOLDKV_RETURN_IF_ERROR(read_running(set));
  }
  return absl::OkStatus();
}

Status SetScores::observe_windows() {
  const SequenceStorage& storage = sequence_.storage();
  const TokenRange range = pooled_range(moment_.fed_tokens);
  for (size_t set = 0; set < sets_.size(); ++set) {
    sets_[set].range = range;
    sets_[set].tokens = moment_.fed_tokens;
  }
  const auto any = std::find_if(storage.exact_sets().begin(), storage.exact_sets().end(),
                                [](const ExactSet& set) { return set.evicts; });
  if (any == storage.exact_sets().end()) return absl::OkStatus();
  std::vector<int32_t> positions(static_cast<size_t>(record_.window_rows()));
  FOLDKV_RETURN_IF_ERROR(read_positions(sequence_.runtime().backend(), any->tokens,
                                        moment_.fed_tokens - record_.window_rows(), record_.window_rows(),
                                        positions.data()));
  for (int64_t layer = 0; layer < storage.layer_count(); ++layer) {
    if (!evicts(sequence_.policy(), sequence_.model(), layer) || !storage.stores(layer)) continue;
    FOLDKV_RETURN_IF_ERROR(observe_layer(layer, range, positions));
  }
  if (policy().budget.layers == LayerAllocator::kDynamic) FOLDKV_RETURN_IF_ERROR(count_dynamic(range));
  if (policy().selection.scope != SelectionScope::kGroup) return absl::OkStatus();
  for (SetTable& set : sets_) {
    if (set.scores.scores.heads == 0) continue;
    FOLDKV_ASSIGN_OR_RETURN(set.scores.base, pool_lists(policy(), set.scores.base));
    FOLDKV_ASSIGN_OR_RETURN(set.scores.scores, pool_lists(policy(), set.scores.scores));
  }
  return absl::OkStatus();
}

Status SetScores::observe_layer(int64_t layer, TokenRange range, std::span<const int32_t> positions) {
  const WindowShape shape{record_.window_rows(), moment_.fed_tokens};
  FOLDKV_ASSIGN_OR_RETURN(const TokenStatistics statistics,
                          window_statistics(sequence_, record_, layer, shape, positions.data(), workspace_));
  const int64_t lists = std::ssize(sequence_.storage().planes_of(layer));
  const SequenceEviction& eviction = *sequence_.policy().eviction;
  FOLDKV_ASSIGN_OR_RETURN(ScoreTable table,
                          reduce_window(policy(), statistics, range, lists, eviction.voting_of(layer)));
  FOLDKV_ASSIGN_OR_RETURN(const ScoreTable norms, layer_norms(layer, range));
  FOLDKV_ASSIGN_OR_RETURN(WeighedScores scores, weigh_lists(policy(), std::move(table), norms));
  FOLDKV_RETURN_IF_ERROR(weigh_layer(statistics, range, scores.scores));
  if (policy().selection.first_stage_by_mean) {
    FOLDKV_ASSIGN_OR_RETURN(scores.base, first_stage_table(statistics, range, lists));
  }
  return add_layer(layer, scores);
}

StatusOr<ScoreTable> SetScores::first_stage_table(const TokenStatistics& statistics, TokenRange range,
                                                  int64_t lists) const {
  FOLDKV_ASSIGN_OR_RETURN(const ScoreTable means, reduce_rows(statistics, RowReduction::kMean, 0.0, range));
  return reduce_heads(means, lists, HeadReduction::kMean);
}

// [KV heads][range.count], or empty when the policy does not weigh.
StatusOr<ScoreTable> SetScores::layer_norms(int64_t layer, TokenRange range) const {
  if (policy().reduction.weighting == ValueWeighting::kNone) return ScoreTable();
  const int64_t heads = sequence_.model().layer(layer).kv_heads;
  ScoreTable norms(heads, range.count);
  for (int64_t head = 0; head < heads; ++head) {
    FOLDKV_ASSIGN_OR_RETURN(const ScoreTable all, value_norms(sequence_, layer, head, moment_.fed_tokens, workspace_));
    std::copy_n(all.scores.begin() + range.first, range.count, norms.head(head).begin());
  }
  return norms;
}

// Sums over the heads of a set.
StatusOr<ScoreTable> SetScores::set_norms(const ExactSet& set, int64_t tokens, TokenRange range) const {
  ScoreTable norms(1, range.count);
  for (const int32_t index : set.planes) {
    const ExactPlane& plane = sequence_.storage().planes()[static_cast<size_t>(index)];
    for (int64_t head = plane.first_head; head < plane.first_head + plane.head_count; ++head) {
      FOLDKV_ASSIGN_OR_RETURN(const ScoreTable all, value_norms(sequence_, plane.layer, head, tokens, workspace_));
      for (int64_t token = 0; token < range.count; ++token) {
        norms.scores[static_cast<size_t>(token)] += all.scores[static_cast<size_t>(range.first + token)];
      }
    }
  }
  return norms;
}

// To the sets of the layer's planes.
Status SetScores::add_layer(int64_t layer, const WeighedScores& scores) {
  const SequenceStorage& storage = sequence_.storage();
  const std::span<const ExactPlane> planes = storage.planes_of(layer);
  for (size_t plane = 0; plane < planes.size(); ++plane) {
    const size_t set = storage.set_index_of(planes[plane]);
    const auto list = static_cast<int64_t>(plane);
    FOLDKV_RETURN_IF_ERROR(add_list(sets_[set].scores.base, list_of(scores.base, list)));
    FOLDKV_RETURN_IF_ERROR(add_list(sets_[set].scores.scores, list_of(scores.scores, list)));
  }
  return absl::OkStatus();
}

// What the layer allocator wants to know of a layer.
Status SetScores::weigh_layer(const TokenStatistics& statistics, TokenRange range, const ScoreTable& scores) {
  const BudgetRules& rules = policy().budget;
  if (rules.layers == LayerAllocator::kCake) {
    FOLDKV_ASSIGN_OR_RETURN(const double entropy, attention_entropy(statistics, range));
    FOLDKV_ASSIGN_OR_RETURN(const double variance, temporal_variance(statistics, range));
    FOLDKV_ASSIGN_OR_RETURN(const double preference,
                            cake_preference(entropy, variance, rules.entropy_temperature, rules.variance_temperature));
    layer_numbers_.push_back(preference);
  } else if (rules.layers == LayerAllocator::kLava) {
    FOLDKV_ASSIGN_OR_RETURN(const double weight, entropy_weight(scores));
    layer_numbers_.push_back(weight);
  } else if (rules.layers == LayerAllocator::kDynamic) {
    layer_tables_.push_back(scores);
  }
  return absl::OkStatus();
}

Status SetScores::count_dynamic(TokenRange range) {
  if (layer_tables_.empty()) return absl::OkStatus();
  size_t longest = 0;
  for (const ScoreTable& table : layer_tables_) longest = std::max(longest, table.scores.size());
  // Layers of fewer heads have less to compare; what they lack never wins.
  ScoreTable all(std::ssize(layer_tables_), static_cast<int64_t>(longest));
  std::fill(all.scores.begin(), all.scores.end(), -std::numeric_limits<double>::infinity());
  for (int64_t layer = 0; layer < all.heads; ++layer) {
    const ScoreTable& table = layer_tables_[static_cast<size_t>(layer)];
    std::copy(table.scores.begin(), table.scores.end(), all.head(layer).begin());
  }
  const PolicyCounts counts = count_policy_tokens(policy(), moment_.fed_tokens);
  const int64_t lists = range.count > 0 ? all.tokens / range.count : 0;
  const int64_t best = std::max<int64_t>(0, counts.budget - counts.kept_always()) * lists * all.heads;
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<int64_t> found, count_joint_best(all, {}, 0, best));
  layer_numbers_.assign(found.begin(), found.end());
  layer_tables_.clear();
  return absl::OkStatus();
}

Status SetScores::read_running(size_t set) {
  SetTable& table = sets_[set];
  const ExactSet& exact = sequence_.storage().exact_sets()[set];
  table.tokens = sequence_.storage().tokens_of(exact, moment_.new_tokens);
  table.range = pooled_range(table.tokens);
  ScoreTable list(1, table.tokens);
  const bool forecast = policy().scoring.scorer == Scorer::kExpectedAttention;
  if (policy().scoring.scorer == Scorer::kPosition) {
    std::iota(list.scores.begin(), list.scores.end(), 0.0);
  } else if (!forecast) {
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<float> numbers, record_.scores(set));
    std::copy(numbers.begin(), numbers.end(), list.scores.begin());
    if (policy().scoring.rows == RowReduction::kNegatedBelow) {
      for (double& score : list.scores) score = -score;
    }
    if (exact.grouped) {
      // Latents stand first there; sinks are older.
      const int64_t latents = sequence_.storage().latent_tokens(exact.group);
      const int64_t sinks = std::min(sequence_.storage().sink_slots(), table.tokens - latents);
      std::rotate(list.scores.begin(), list.scores.begin() + latents, list.scores.begin() + latents + sinks);
    }
  }
  ScoreTable ranged(1, table.range.count);
  std::copy_n(list.scores.begin() + table.range.first, table.range.count, ranged.scores.begin());
  if (forecast) {
    FOLDKV_ASSIGN_OR_RETURN(ranged, forecast_scores(sequence_, record_, exact, table.range, workspace_));
  }
  if (policy().scoring.scorer != Scorer::kPosition) {
    FOLDKV_ASSIGN_OR_RETURN(ranged, pool_lists(policy(), ranged));
  }
  ScoreTable norms;
  if (policy().reduction.weighting != ValueWeighting::kNone) {
    FOLDKV_ASSIGN_OR_RETURN(norms, set_norms(exact, table.tokens, table.range));
  }
  FOLDKV_ASSIGN_OR_RETURN(table.scores, weigh_lists(policy(), std::move(ranged), norms));
  return absl::OkStatus();
}

StatusOr<std::vector<double>> SetScores::ranking(size_t set, std::span<const uint8_t> always, int64_t budget) const {
  const SelectionRules& rules = policy().selection;
  if (rules.first_stage_share == 0.0 && rules.first_stage_mass == 0.0) return scores(set);
  const std::vector<double> stage = base(set);
  int64_t first = 0;
  if (rules.first_stage_mass > 0.0) {
    FOLDKV_ASSIGN_OR_RETURN(first, count_below_mass(stage, always, rules.first_stage_mass));
  } else {
    const auto kept = std::count_if(always.begin(), always.end(), [](uint8_t mark) { return mark != 0; });
    first = static_cast<int64_t>(rules.first_stage_share * static_cast<double>(std::max<int64_t>(0, budget - kept)));
  }
  return raise_first_stage(stage, scores(set), always, first);
}

std::vector<double> SetScores::spread(const SetTable& set, const ScoreTable& list) {
  std::vector<double> all(static_cast<size_t>(set.tokens));
  std::copy(list.scores.begin(), list.scores.end(), all.begin() + set.range.first);
  return all;
}

}  // namespace foldkv
