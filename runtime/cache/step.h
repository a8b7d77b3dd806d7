#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/cancellation.h"
#include "runtime/cache/attention_record.h"
#include "runtime/cache/due_sets.h"
#include "runtime/cache/kept_tokens.h"
#include "runtime/cache/sequence.h"
#include "runtime/cache/step_scratch.h"

namespace foldkv {

struct Feed {
  std::shared_ptr<Sequence> sequence;
  int64_t token_count = 0;
  std::vector<int32_t> positions;  // empty: the next ones
  bool continues = false;          // more of the same prompt follows: keep all exact
};

struct StepRules {
  bool hidden_input = false;
  bool projected_output = false;
  Cancellation cancellation = Cancellation();  // asked between blocks of rows, and before what a commit cannot undo
};

// Rows are the tokens of all feeds, one feed after the other.
struct AttendInput {
  TensorView hidden;             // or
  TensorView query, key, value;  // before norms and rotation
  MutableTensorView output;
  MutableTensorView log_sum_exp;  // may be absent
};

// One transaction over one or more sequences: begin reserves, attend runs layer by layer, commit publishes, and
// destruction without commit rolls back. Used by one thread at a time.
class Step {
 public:
  // Budget error when a page, a latent or scratch does not fit: nothing has changed then.
  [[nodiscard]] static StatusOr<std::unique_ptr<Step>> begin(std::shared_ptr<Runtime> runtime, std::vector<Feed> feeds,
                                                             const StepRules& rules);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Allocates nothing. After an error the same layer may be tried again.
  [[nodiscard]] Status attend(int64_t layer, const AttendInput& input);
  // Numeric error when a latent does not fit its format: nothing is published and the step stays open.
  [[nodiscard]] Status commit();

  [[nodiscard]] const Model& model() const { return feeds_.front().sequence->model(); }
  [[nodiscard]] const StepRules& rules() const { return rules_; }
  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] int64_t next_layer() const { return next_layer_; }
  [[nodiscard]] bool committed() const { return committed_; }

 private:
  struct Part {  // a feed's place in the step
    int64_t first_row = 0;
    StorageChange change;
    AttentionRecord record;
    KeptTokens kept;    // set by commit
    Energies energies;  // likewise, of the run that it encodes
    bool acquired = false;
    bool reserved = false;
  };
  struct RowBlock {
    int64_t first = 0;
    int64_t count = 0;
  };

  Step(std::shared_ptr<Runtime> runtime, std::vector<Feed> feeds, const StepRules& rules);

  [[nodiscard]] Status prepare();
  [[nodiscard]] Status check_feeds() const;
  [[nodiscard]] Status check_positions(size_t index) const;
  [[nodiscard]] Status acquire();
  void plan_parts();
  void fill_positions();
  [[nodiscard]] Status reserve();
  [[nodiscard]] Status reserve_scratch();
  [[nodiscard]] Status begin_records();
  [[nodiscard]] Status write_new_positions();
  void drop();

  [[nodiscard]] Status check_input(const AttendInput& input) const;
  [[nodiscard]] Status append_block(int64_t layer, const AttendInput& input, RowBlock block);
  [[nodiscard]] Status attend_block(int64_t layer, const AttendInput& input, RowBlock block);
  [[nodiscard]] StatusOr<TensorView> project(const TensorView& weight, const TensorView& bias, const TensorView& x,
                                             int64_t offset);
  [[nodiscard]] StatusOr<TensorView> hidden_rows(const AttendInput& input, RowBlock block);
  [[nodiscard]] Status attend_parts(int64_t layer, RowBlock block, const float* queries, float* context,
                                    float* log_sum_exp);
  void add_views(int64_t layer, size_t index, RowBlock block);
  [[nodiscard]] Status observe_queries(int64_t layer, RowBlock block, backend::PrepareHeadsRequest heads);
  [[nodiscard]] Status record_attention(int64_t layer, RowBlock block, const float* queries, const float* log_sum_exp);
  [[nodiscard]] Status store_output(int64_t layer, const AttendInput& input, RowBlock block, float* context);
  [[nodiscard]] Status observe();
  [[nodiscard]] EvictionMoment eviction_moment(size_t index) const;
  [[nodiscard]] Status decide(size_t index);
  [[nodiscard]] Status gather(std::span<int32_t> buffer);

  template <typename Number>
  [[nodiscard]] Number* scratch_at(int64_t offset) const {
    return reinterpret_cast<Number*>(scratch_.data() + offset);
  }

  std::shared_ptr<Runtime> runtime_;
  std::vector<Feed> feeds_;
  std::vector<Part> parts_;
  std::vector<int32_t> positions_;                         // [rows]
  std::vector<backend::AttendSequence> attend_sequences_;  // room for all views, so that attend allocates nothing
  StepRules rules_;
  int64_t rows_ = 0;
  int64_t next_layer_ = 0;
  bool committed_ = false;
  bool records_ = false;  // some sequence's attention is recorded
  ProductSet products_;
  ScratchPlan plan_;
  Block scratch_;
};

}  // namespace foldkv
