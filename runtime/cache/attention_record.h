#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cache/query_moments.h"
#include "runtime/cache/query_window.h"
#include "runtime/cache/record_plan.h"
#include "runtime/cache/sequence.h"

namespace foldkv {

// What one step writes down of one sequence's attention for its eviction policy: running scores of tokens, added up as
// rows are attended, and the queries of the last rows of a prompt. Nothing of the sequence changes before the step is
// committed. Owned by the step, used by its thread.
class AttentionRecord {
 public:
  AttentionRecord() = default;  // records nothing
  // For a step (or, with no new tokens, for a call to compress).
  AttentionRecord(const Sequence& sequence, int64_t new_tokens);

  // Memory that begin is given, for running scores.
  [[nodiscard]] int64_t scratch_bytes() const { return plan_.scratch_bytes(); }
  // Fills the scores with those that the sequence holds, zeros for new tokens, and the window with its earlier rows.
  [[nodiscard]] Status begin(Allocator& allocator, std::byte* scratch);

  // Before a layer's rows. A layer that comes again, since attending it failed, begins with what it began with.
  [[nodiscard]] Status begin_layer(int64_t layer);
  // Rows [first, first + count) of the feed have been attended by a layer: queries [count][query heads][head size] and
  // log_sum_exp [count][query heads] are those that attend had. positions: of the rows, host. Allocates nothing.
  struct Rows {
    int64_t first = 0;
    int64_t count = 0;
    const int32_t* positions = nullptr;
    const float* queries = nullptr;
    const float* log_sum_exp = nullptr;
  };
  [[nodiscard]] Status record(int64_t layer, const Rows& rows, std::byte* workspace);

  [[nodiscard]] const RecordPlan& plan() const { return plan_; }
  [[nodiscard]] bool active() const { return scores_rows() || window_rows() > 0; }
  [[nodiscard]] bool scores_rows() const { return !plan_.lists.empty(); }
  // Of the tokens of an exact set after the step, latents first. Scores are recorded.
  [[nodiscard]] StatusOr<std::vector<float>> scores(size_t exact_set) const;

  [[nodiscard]] int64_t window_rows() const { return plan_.window_rows; }
  // Of a layer over which the policy decides.
  [[nodiscard]] const float* window_queries(int64_t layer) const { return queries_in(window_, layer); }
  [[nodiscard]] const float* window_log_sum_exp(int64_t layer) const { return sums_in(window_, layer); }
  [[nodiscard]] QueryWindow take_window() { return std::move(window_); }

  // The prompt's queries before rotation enter moments: rows [first, first + count) of the feed, host memory.
  [[nodiscard]] bool forecasts() const { return plan_.moment_numbers > 0; }
  void observe_queries(int64_t layer, int64_t first, int64_t count, const float* queries);
  // Those of this step's end, or of the prompt when it has ended before.
  [[nodiscard]] const float* moments(int64_t layer) const;
  [[nodiscard]] int64_t moment_rows() const;
  [[nodiscard]] QueryMoments take_moments() { return std::move(moments_); }
  [[nodiscard]] int64_t new_tokens() const { return new_tokens_; }

 private:
  [[nodiscard]] Status fill_lists();
  [[nodiscard]] Status copy_earlier_rows();
  [[nodiscard]] Status begin_moments(Allocator& allocator);
  void copy_moments(int64_t layer);
  [[nodiscard]] int64_t sink_rows() const;
  [[nodiscard]] Status score_view(int64_t layer, const ExactPlane& plane, const Rows& rows, std::byte* workspace);
  [[nodiscard]] Status keep_queries(int64_t layer, const Rows& rows);
  [[nodiscard]] float* queries_in(const QueryWindow& window, int64_t layer) const;
  [[nodiscard]] float* sums_in(const QueryWindow& window, int64_t layer) const;
  [[nodiscard]] Status copy_numbers(float* to, const float* from, int64_t count) const;

  const Sequence* sequence_ = nullptr;
  RecordPlan plan_;
  int64_t new_tokens_ = 0;
  float* numbers_ = nullptr;  // the lists; behind them those of one layer as they were before it
  int64_t layer_ = -1;
  std::vector<float> thresholds_;  // room for the rows of a call
  QueryWindow window_;
  QueryMoments moments_;
};

}  // namespace foldkv
