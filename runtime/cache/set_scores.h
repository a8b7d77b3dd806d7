#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/cache/attention_record.h"
#include "runtime/policy/layer_scores.h"
#include "runtime/policy/policy_budgets.h"

namespace foldkv {

// The scores of the tokens of exact sets, by the sequence's eviction policy, and what its layer allocator wants to know.
// Tokens of a set are in the order of their positions here.
class SetScores {
 public:
  struct Moment {
    int64_t fed_tokens = 0;  // of the sequence, the new ones included
    int64_t new_tokens = 0;
    bool prompt_ends = false;
  };
  SetScores(const Sequence& sequence, const AttentionRecord& record, const Moment& moment, std::byte* workspace)
      : sequence_(sequence), record_(record), moment_(moment), workspace_(workspace) {}

  // Of the sets that are due.
  [[nodiscard]] Status compute(const std::vector<bool>& due);

  [[nodiscard]] const Moment& moment() const { return moment_; }
  // Numbers for layer_budgets, one for each layer over which the policy decides; empty when the allocator wants others, or
  // when they can only be had at the end of a prompt.
  [[nodiscard]] const std::vector<double>& layer_numbers() const { return layer_numbers_; }
  // Scores of all tokens of a set that was computed; those outside the pooled range are kept always and have 0. The base
  // is what a first stage looks at.
  [[nodiscard]] std::vector<double> base(size_t set) const { return spread(sets_[set], sets_[set].scores.base); }
  [[nodiscard]] std::vector<double> scores(size_t set) const { return spread(sets_[set], sets_[set].scores.scores); }
  // Scores by which a set is cut to `budget` tokens: those of a first stage are infinite.
  [[nodiscard]] StatusOr<std::vector<double>> ranking(size_t set, std::span<const uint8_t> always, int64_t budget) const;

 private:
  struct SetTable {
    WeighedScores scores;  // one list, of the range
    TokenRange range;
    int64_t tokens = 0;
  };

  [[nodiscard]] const EvictionPolicy& policy() const { return sequence_.policy().eviction->policy; }
  [[nodiscard]] TokenRange pooled_range(int64_t tokens) const;
  [[nodiscard]] Status observe_windows();
  [[nodiscard]] Status observe_layer(int64_t layer, TokenRange range, std::span<const int32_t> positions);
  [[nodiscard]] StatusOr<ScoreTable> first_stage_table(const TokenStatistics& statistics, TokenRange range,
                                                       int64_t lists) const;
  [[nodiscard]] StatusOr<ScoreTable> layer_norms(int64_t layer, TokenRange range) const;
  [[nodiscard]] StatusOr<ScoreTable> set_norms(const ExactSet& set, int64_t tokens, TokenRange range) const;
  [[nodiscard]] Status add_layer(int64_t layer, const WeighedScores& scores);
  [[nodiscard]] Status weigh_layer(const TokenStatistics& statistics, TokenRange range, const ScoreTable& scores);
  [[nodiscard]] Status count_dynamic(TokenRange range);
  [[nodiscard]] Status read_running(size_t set);
  [[nodiscard]] static std::vector<double> spread(const SetTable& set, const ScoreTable& list);

  const Sequence& sequence_;
  const AttentionRecord& record_;
  Moment moment_;
  std::byte* workspace_;
  std::vector<SetTable> sets_;
  std::vector<double> layer_numbers_;
  std::vector<ScoreTable> layer_tables_;  // of DynamicKV, which compares all layers
};

}  // namespace foldkv
