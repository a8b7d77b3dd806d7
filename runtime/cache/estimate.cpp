#include "runtime/cache/estimate.h"

#include <algorithm>

#include "runtime/cache/decide_tokens.h"
#include "runtime/cache/encode_run.h"
#include "runtime/cache/plan_eviction.h"
#include "runtime/memory/counting_allocator.h"

namespace foldkv {
namespace {

// The life of one sequence on a counting allocator.
class CountedLife {
 public:
  CountedLife(const Runtime& runtime, const PreparedModel& model, const PreparedProfile& profile,
              const EstimateQuestion& question)
      : runtime_(runtime),
        model_(model),
        profile_(profile),
        question_(question),
        storage_(*model.model, profile, question.policy) {}
  ~CountedLife() { storage_.release(allocator_); }

  Status feed(int64_t tokens, bool prompt) {
    StorageChange change;
    change.new_tokens = tokens;
    if (storage_.has_groups()) {
      change.encoded_tokens = encode_count(
          question_.policy,
          {storage_.grouped_exact_tokens() + tokens, storage_.latent_tokens() > 0, prompt, storage_.run_tokens()});
    }
    change.due = due_sets(question_.policy, storage_, {change, prompt, false, false});
    const RecordPlan record = plan_record(*model_.model, question_.policy, storage_, {tokens, prompt, 0});
    FOLDKV_RETURN_IF_ERROR(storage_.reserve(allocator_, change));
    FOLDKV_ASSIGN_OR_RETURN(const int64_t scratch, scratch_bytes({change, prompt, false, false}, record));
    FOLDKV_ASSIGN_OR_RETURN(const Block block, Block::allocate(allocator_, Role::kScratch, scratch));
    Block window;
    if (record.window_rows > 0) {
      FOLDKV_ASSIGN_OR_RETURN(window, Block::allocate(allocator_, Role::kPositions, record.window_bytes()));
    }
    Block moments;
    if (record.moment_numbers > 0) {
      FOLDKV_ASSIGN_OR_RETURN(moments, Block::allocate(allocator_, Role::kPositions, record.moment_bytes()));
    }
    FOLDKV_RETURN_IF_ERROR(plan_eviction(*model_.model, profile_, question_.policy, storage_, prompt, change));
    storage_.publish(allocator_, change);
    if (record.moment_numbers > 0 && question_.policy.eviction->policy.selection.interval > 0) {
      moments_ = std::move(moments);
    }
    held_bytes_ = std::max(held_bytes_, sequence_bytes());
    return absl::OkStatus();
  }

  [[nodiscard]] const CountingAllocator& allocator() const { return allocator_; }
  [[nodiscard]] int64_t held_bytes() const { return held_bytes_; }
  [[nodiscard]] int64_t sequence_bytes() const { return storage_.ledger().total() + moments_.charged_bytes(); }

 private:
  StatusOr<int64_t> scratch_bytes(const EvictionMoment& moment, const RecordPlan& record) {
    const StorageChange& change = moment.change;
    ScratchNeeds needs;
    needs.hidden_input = question_.rules.hidden_input;
    needs.projected_output = question_.rules.projected_output;
    needs.rows = change.new_tokens;
    needs.add_views(storage_, change.new_tokens);
    needs.records = record.active();
    needs.forecasts = record.moment_numbers > 0;
    needs.record_bytes = record.scratch_bytes();
    FOLDKV_ASSIGN_OR_RETURN(needs.commit_bytes,
                            decide_workspace(runtime_, model_, profile_, question_.policy, storage_, record, moment));
    if (change.encoded_tokens > 0) {
      needs.commit_bytes = std::max(needs.commit_bytes, encode_workspace(runtime_.backend(), profile_,
                                                                         question_.policy.plan, change.encoded_tokens));
    }
    if (product_rows_ != needs.rows) {
      FOLDKV_ASSIGN_OR_RETURN(products_, make_products(runtime_, *model_.model, needs));
      product_rows_ = needs.rows;
    }
    return plan_scratch(runtime_, model_, {{&profile_, question_.policy.plan}}, products_, needs).bytes;
  }

  const Runtime& runtime_;
  const PreparedModel& model_;
  const PreparedProfile& profile_;
  const EstimateQuestion& question_;
  CountingAllocator allocator_;
  SequenceStorage storage_;
  Block moments_;  // of the prompt's queries
  ProductSet products_;
  int64_t product_rows_ = 0;
  int64_t held_bytes_ = 0;
};

}  // namespace

StatusOr<Estimate> estimate_sequence(const Runtime& runtime, const std::shared_ptr<const Model>& model,
                                     const std::shared_ptr<const Profile>& profile, const EstimateQuestion& question) {
  if (profile != nullptr) FOLDKV_RETURN_IF_ERROR(check_profile(*profile, *model));
  if (question.rules.hidden_input && !model->has_weights()) {
    return with_argument(state_error("hidden states need weights; none are bound for some layer"),
                         "step_options.input");
  }
  if (question.rules.projected_output && !model->has_output_weights()) {
    return with_argument(state_error("a projected output needs output weights; none are bound for some layer"),
                         "step_options.output");
  }
  CountingAllocator shared;
  FOLDKV_ASSIGN_OR_RETURN(const PreparedModel prepared_model,
                          allocate_prepared_model(shared, runtime.backend(), model));
  FOLDKV_ASSIGN_OR_RETURN(const PreparedProfile prepared_profile,
                          allocate_prepared_profile(shared, runtime.backend(), *model, profile,
                                                    question.policy.arithmetic));
  Estimate estimate;
  estimate.shared_bytes = shared.ledger().total();
  CountedLife life(runtime, prepared_model, prepared_profile, question);
  if (question.prompt_tokens > 0) FOLDKV_RETURN_IF_ERROR(life.feed(question.prompt_tokens, true));
  for (int64_t token = 0; token < question.generated_tokens; ++token) {
    FOLDKV_RETURN_IF_ERROR(life.feed(1, question.prompt_tokens == 0 && token == 0));
  }
  estimate.sequence_bytes = life.sequence_bytes();
  estimate.held_bytes = life.held_bytes();
  estimate.peak_bytes = life.allocator().peak();
  return estimate;
}

}  // namespace foldkv
