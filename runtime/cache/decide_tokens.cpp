#include "runtime/cache/decide_tokens.h"

#include <algorithm>

#include "runtime/cache/eviction_needs.h"
#include "runtime/cache/forecast_scores.h"
#include "runtime/cache/set_budgets.h"
#include "runtime/cache/set_scores.h"
#include "runtime/cache/token_pages.h"
#include "runtime/cache/value_norms.h"
#include "runtime/cache/window_statistics.h"
#include "runtime/policy/position_selection.h"
#include "runtime/policy/selection.h"

namespace foldkv {
namespace {

// One decision over the sets of a sequence.
class Decision {
 public:
  Decision(const Sequence& sequence, const AttentionRecord& record, const EvictionMoment& moment, std::byte* workspace)
      : sequence_(sequence),
        storage_(sequence.storage()),
        eviction_(*sequence.policy().eviction),
        record_(record),
        moment_(moment),
        workspace_(workspace),
        kept_(keep_all(storage_, moment.change)),
        due_(moment.change.due) {}

  StatusOr<KeptTokens> decide() {
    if (std::find(due_.begin(), due_.end(), true) != due_.end()) {
      FOLDKV_RETURN_IF_ERROR(choose());
    }
    FOLDKV_RETURN_IF_ERROR(carry_scores());
    return std::move(kept_);
  }

 private:
  const EvictionPolicy& policy() const { return eviction_.policy; }
  int64_t fed_tokens() const { return storage_.token_count() + moment_.change.new_tokens; }
  int64_t tokens_of(const ExactSet& set) const { return storage_.tokens_of(set, moment_.change.new_tokens); }

  Status choose() {
    SetScores scores(sequence_, record_, {fed_tokens(), moment_.change.new_tokens, moment_.prompt_ends}, workspace_);
    FOLDKV_RETURN_IF_ERROR(scores.compute(due_));
    FOLDKV_ASSIGN_OR_RETURN(kept_.budgets, set_budgets(sequence_, scores));
    for (size_t index = 0; index < due_.size(); ++index) {
      if (!due_[index]) continue;
      FOLDKV_RETURN_IF_ERROR(select(index, scores));
    }
    kept_.reindexed = policy().selection.reindexed;
    return absl::OkStatus();
  }

  Status select(size_t index, const SetScores& scores) {
    const ExactSet& set = storage_.exact_sets()[index];
    const TokenBudget& budget = kept_.budgets[index];
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<uint8_t> always, kept_always(set, budget));
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> ranking, scores.ranking(index, always, budget.tokens));
    const StatusOr<std::vector<int32_t>> chosen = select_tokens(ranking, always, budget.tokens);
    if (!chosen.ok()) return name_set(chosen.status(), set);
    if (set.grouped) {
      split(set, *chosen);
    } else {
      kept_.exact[index] = {false, *chosen};
    }
    return absl::OkStatus();
  }

  // Tokens of a group that stay: latents, exact ones that become latents, and exact ones, which all stay.
  void split(const ExactSet& set, std::span<const int32_t> chosen) {
    const auto group = static_cast<size_t>(storage_.latent_index_of(set.group));
    const auto first_latent = static_cast<int32_t>(storage_.sink_slots());
    const auto first_encoded = first_latent + static_cast<int32_t>(storage_.latents_beside(set));
    const auto end = first_encoded + static_cast<int32_t>(moment_.change.encoded_tokens);
    kept_.latent[group] = {false, {}};
    kept_.encoded[group].clear();
    for (const int32_t token : chosen) {
      if (token < first_latent || token >= end) continue;
      if (token < first_encoded) {
        kept_.latent[group].slots.push_back(token - first_latent);
      } else {
        kept_.encoded[group].push_back(token - first_encoded + first_latent);
      }
    }
  }

  // Of a set's tokens in the order of their positions: those that do not compete.
  StatusOr<std::vector<uint8_t>> kept_always(const ExactSet& set, const TokenBudget& budget) const {
    const int64_t tokens = tokens_of(set);
    std::vector<uint8_t> always =
        mark_ends(tokens, count_policy_tokens(policy(), tokens).sinks, std::min(tokens, budget.recent));
    if (set.grouped) {
      // What stays exact stays.
      const int64_t run_end = storage_.sink_slots() + storage_.latents_beside(set) + moment_.change.encoded_tokens;
      std::fill_n(always.begin(), storage_.sink_slots(), uint8_t{1});
      std::fill(always.begin() + run_end, always.end(), uint8_t{1});
    }
    if (eviction_.pinned.empty()) return always;
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> positions, positions_of(set));
    for (size_t token = 0; token < positions.size(); ++token) {
      for (const PositionRange& range : eviction_.pinned) {
        if (positions[token] >= range.first && positions[token] < range.end) always[token] = 1;
      }
    }
    return always;
  }

  StatusOr<std::vector<int32_t>> positions_of(const ExactSet& set) const {
    backend::Backend& backend = sequence_.runtime().backend();
    const int64_t latents = storage_.latents_beside(set);
    const int64_t sinks = set.grouped ? storage_.sink_slots() : 0;
    std::vector<int32_t> positions(static_cast<size_t>(tokens_of(set)));
    FOLDKV_RETURN_IF_ERROR(read_positions(backend, set.tokens, 0, sinks, positions.data()));
    if (latents > 0) {
      const PageList& pages = storage_.latent_set_of(set.group).tokens;
      FOLDKV_RETURN_IF_ERROR(read_positions(backend, pages, 0, latents, positions.data() + sinks));
    }
    FOLDKV_RETURN_IF_ERROR(read_positions(backend, set.tokens, sinks, std::ssize(positions) - sinks - latents,
                                          positions.data() + sinks + latents));
    return positions;
  }

  Status name_set(const Status& status, const ExactSet& set) const {
    const ExactPlane& plane = storage_.planes()[static_cast<size_t>(set.planes.front())];
    return with_argument(status, absl::StrCat("scores of layer ", plane.layer, ", KV head ", plane.first_head));
  }

  // Scores that are remembered go where their tokens go.
  Status carry_scores() {
    if (!remembers_scores(policy())) return absl::OkStatus();
    for (size_t index = 0; index < due_.size(); ++index) {
      const ExactSet& set = storage_.exact_sets()[index];
      if (!set.evicts) continue;
      // Before anything is written down scores are zero, and after an eviction those of a window begin anew.
      std::vector<float> scores(static_cast<size_t>(tokens_of(set)));
      if (record_.scores_rows() && (!due_[index] || scores_whole_life(policy()))) {
        FOLDKV_ASSIGN_OR_RETURN(scores, record_.scores(index));
      }
      const int64_t latents = storage_.latents_beside(set);
      kept_.exact_scores[index] = pick(kept_.exact[index], std::span(scores).subspan(static_cast<size_t>(latents)));
      if (!set.grouped) continue;
      const auto group = static_cast<size_t>(storage_.latent_index_of(set.group));
      std::vector<float>& carried = kept_.latent_scores[group];
      carried = pick(kept_.latent[group], std::span(scores).first(static_cast<size_t>(latents)));
      for (const int32_t slot : kept_.encoded[group]) carried.push_back(scores[static_cast<size_t>(latents + slot)]);
    }
    return absl::OkStatus();
  }

  static std::vector<float> pick(const KeptSlots& kept, std::span<const float> scores) {
    if (kept.all) return {scores.begin(), scores.end()};
    std::vector<float> picked;
    picked.reserve(kept.slots.size());
    for (const int32_t slot : kept.slots) picked.push_back(scores[static_cast<size_t>(slot)]);
    return picked;
  }

  const Sequence& sequence_;
  const SequenceStorage& storage_;
  const SequenceEviction& eviction_;
  const AttentionRecord& record_;
  const EvictionMoment& moment_;
  std::byte* workspace_;
  KeptTokens kept_;
  const std::vector<bool>& due_;  // of exact sets: they are cut to their budgets
};

}  // namespace

StatusOr<int64_t> decide_workspace(const Runtime& runtime, const PreparedModel& model,
                                   const PreparedProfile& profile, const SequencePolicy& policy,
                                   const SequenceStorage& storage, const RecordPlan& record,
                                   const EvictionMoment& moment) {
  const std::vector<bool>& due = moment.change.due;
  if (std::find(due.begin(), due.end(), true) == due.end()) return 0;
  FOLDKV_ASSIGN_OR_RETURN(const int64_t norms, norms_workspace(runtime, *model.model, policy));
  const WindowShape window{record.window_rows, storage.token_count() + moment.change.new_tokens};
  return std::max(
      {norms, forecast_workspace(*model.model, policy), window_workspace(runtime.backend(), model, profile, policy, window)});
}

StatusOr<KeptTokens> decide_tokens(const Sequence& sequence, const AttentionRecord& record,
                                   const EvictionMoment& moment, std::byte* workspace) {
  if (sequence.policy().eviction == nullptr) return keep_all(sequence.storage(), moment.change);
  return Decision(sequence, record, moment, workspace).decide();
}

}  // namespace foldkv
