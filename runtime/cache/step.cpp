#include "runtime/cache/step.h"

#include <algorithm>
#include <limits>

#include "runtime/cache/decide_tokens.h"
#include "runtime/cache/encode_run.h"
#include "runtime/cache/token_pages.h"

namespace foldkv {

StatusOr<std::unique_ptr<Step>> Step::begin(std::shared_ptr<Runtime> runtime, std::vector<Feed> feeds,
                                            const StepRules& rules) {
  std::unique_ptr<Step> step(new Step(runtime, std::move(feeds), rules));
  FOLDKV_RETURN_IF_ERROR(step->check_feeds());
  FOLDKV_RETURN_IF_ERROR(runtime->with_room([&] {
    const Status prepared = step->prepare();
    if (!prepared.ok()) step->drop();
    return prepared;
  }));
  return step;
}

Status Step::prepare() {
  rows_ = 0;
  positions_.clear();
  FOLDKV_RETURN_IF_ERROR(acquire());
  for (size_t index = 0; index < feeds_.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(check_positions(index));
  }
  plan_parts();
  FOLDKV_RETURN_IF_ERROR(reserve());
  fill_positions();
  return write_new_positions();
}

Step::Step(std::shared_ptr<Runtime> runtime, std::vector<Feed> feeds, const StepRules& rules)
    : runtime_(std::move(runtime)), feeds_(std::move(feeds)), parts_(feeds_.size()), rules_(rules) {
  size_t views = 0;
  for (const Feed& feed : feeds_) views += static_cast<size_t>(most_views(feed.sequence->storage()));
  attend_sequences_.reserve(views);
}

Step::~Step() {
  if (!committed_) drop();
}

Status Step::check_feeds() const {
  if (feeds_.empty()) return argument_error("feed_count", "is 0, expected at least 1");
  const Sequence& first = *feeds_.front().sequence;
  int64_t rows = 0;
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Feed& feed = feeds_[index];
    const std::string name = absl::StrCat("feeds[", index, "]");
    if (&feed.sequence->runtime() != runtime_.get()) {
      return argument_error(name + ".sequence", "belongs to another runtime");
    }
    if (feed.sequence->shared_model() != first.shared_model()) {
      return with_argument(mismatch_error("is a sequence of another model than feeds[0]"), name + ".sequence");
    }
    constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
    if (feed.token_count < 1 || feed.token_count > kLargest || (rows += feed.token_count) > kLargest) {
      return argument_error(name + ".token_count",
                            absl::StrCat("is ", feed.token_count, ", expected 1 or more, in all at most ", kLargest));
    }
  }
  if (rules_.hidden_input && !first.model().has_weights()) {
    return with_argument(state_error("hidden states need weights; none are bound for some layer"), "options.input");
  }
  if (rules_.projected_output && !first.model().has_output_weights()) {
    return with_argument(state_error("a projected output needs output weights; none are bound for some layer"),
                         "options.output");
  }
  return absl::OkStatus();
}

Status Step::check_positions(size_t index) const {
  const Feed& feed = feeds_[index];
  const int64_t next = feed.sequence->next_position();
  const std::string name = absl::StrCat("feeds[", index, "].positions");
  if (feed.positions.empty()) {
    if (next + feed.token_count - 1 <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
    return argument_error(name, absl::StrCat("would reach ", next + feed.token_count - 1, ", expected below 2^31"));
  }
  int64_t lowest = next;
  for (size_t token = 0; token < feed.positions.size(); ++token) {
    if (feed.positions[token] < lowest) {
      return argument_error(name, absl::StrCat("[", token, "] is ", feed.positions[token], ", expected ", lowest,
                                               " or more: positions rise"));
    }
    lowest = int64_t{feed.positions[token]} + 1;
  }
  return absl::OkStatus();
}

Status Step::acquire() {
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Status begun = feeds_[index].sequence->begin_change();
    if (!begun.ok()) return with_argument(begun, absl::StrCat("feeds[", index, "].sequence"));
    parts_[index].acquired = true;
  }
  return absl::OkStatus();
}

void Step::plan_parts() {
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Feed& feed = feeds_[index];
    const SequenceStorage& storage = feed.sequence->storage();
    Part& part = parts_[index];
    part.first_row = rows_;
    part.change.new_tokens = feed.token_count;
    part.record = AttentionRecord(*feed.sequence, feed.token_count);
    rows_ += feed.token_count;
    if (!feed.continues && storage.has_groups()) {
      part.change.encoded_tokens = encode_count(
          feed.sequence->policy(), {storage.grouped_exact_tokens() + feed.token_count, storage.latent_tokens() > 0,
                                    feed.sequence->prompt_open(), storage.run_tokens()});
    }
    part.change.due = due_sets(feed.sequence->policy(), storage, eviction_moment(index));
  }
}

void Step::fill_positions() {
  positions_.reserve(static_cast<size_t>(rows_));
  for (const Feed& feed : feeds_) {
    if (!feed.positions.empty()) {
      positions_.insert(positions_.end(), feed.positions.begin(), feed.positions.end());
      continue;
    }
    for (int64_t token = 0; token < feed.token_count; ++token) {
      positions_.push_back(static_cast<int32_t>(feed.sequence->next_position() + token));
    }
  }
}

Status Step::reserve() {
  for (size_t index = 0; index < feeds_.size(); ++index) {
    parts_[index].reserved = true;
    const Status status = feeds_[index].sequence->storage().reserve(runtime_->arena(), parts_[index].change);
    if (!status.ok()) return with_argument(status, absl::StrCat("feeds[", index, "]"));
  }
  return reserve_scratch();
}

Status Step::reserve_scratch() {
  ScratchNeeds needs;
  needs.hidden_input = rules_.hidden_input;
  needs.projected_output = rules_.projected_output;
  needs.rows = rows_;
  std::vector<PlannedProfile> profiles;
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Sequence& sequence = *feeds_[index].sequence;
    const PlannedProfile planned = {&sequence.shared_profile()->data, sequence.policy().plan};
    if (std::find(profiles.begin(), profiles.end(), planned) == profiles.end()) profiles.push_back(planned);
    needs.add_views(sequence.storage(), feeds_[index].token_count);
    needs.records = needs.records || parts_[index].record.active();
    needs.forecasts = needs.forecasts || parts_[index].record.forecasts();
    needs.record_bytes += parts_[index].record.scratch_bytes();
    FOLDKV_ASSIGN_OR_RETURN(
        const int64_t decision,
        decide_workspace(*runtime_, sequence.shared_model()->data, *planned.profile, sequence.policy(),
                         sequence.storage(), parts_[index].record.plan(), eviction_moment(index)));
    needs.commit_bytes = std::max(needs.commit_bytes, decision);
    if (parts_[index].change.encoded_tokens == 0) continue;
    needs.commit_bytes = std::max(
        needs.commit_bytes,
        encode_workspace(runtime_->backend(), *planned.profile, planned.plan, parts_[index].change.encoded_tokens));
  }
  FOLDKV_ASSIGN_OR_RETURN(products_, make_products(*runtime_, model(), needs));
  plan_ = plan_scratch(*runtime_, feeds_.front().sequence->shared_model()->data, profiles, products_, needs);
  FOLDKV_ASSIGN_OR_RETURN(scratch_, Block::allocate(runtime_->arena(), Role::kScratch, plan_.bytes));
  return begin_records();
}

Status Step::begin_records() {
  records_ = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.record.active(); });
  std::byte* memory = scratch_.data() + plan_.records;
  for (size_t index = 0; index < feeds_.size(); ++index) {
    AttentionRecord& record = parts_[index].record;
    FOLDKV_RETURN_IF_ERROR(record.begin(runtime_->arena(), memory));
    memory += record.scratch_bytes();
  }
  return absl::OkStatus();
}

Status Step::write_new_positions() {
  for (size_t index = 0; index < feeds_.size(); ++index) {
    for (const ExactSet& set : feeds_[index].sequence->storage().exact_sets()) {
      FOLDKV_RETURN_IF_ERROR(write_positions(runtime_->backend(), set.tokens, set.token_count,
                                             feeds_[index].token_count, positions_.data() + parts_[index].first_row));
    }
  }
  return absl::OkStatus();
}

void Step::drop() {
  scratch_.reset();
  for (size_t index = 0; index < feeds_.size(); ++index) {
    if (parts_[index].reserved) feeds_[index].sequence->storage().rollback(runtime_->arena());
    if (parts_[index].acquired) feeds_[index].sequence->end_change();
    parts_[index] = Part{};
  }
  runtime_->arena().give_back();
}

Status Step::commit() {
  if (committed_) return with_argument(state_error("the step is committed already"), "step");
  if (next_layer_ != model().layer_count()) {
    return with_argument(state_error(absl::StrCat("layers up to ", next_layer_, " of ", model().layer_count(),
                                                  " have been attended; all must be")),
                         "step");
  }
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Status status = feeds_[index].sequence->check_held();
    if (!status.ok()) return with_argument(status, absl::StrCat("feeds[", index, "]"));
  }
  // Every decision before any encoding, which uses the memory of what is decided upon.
  for (size_t index = 0; index < feeds_.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(rules_.cancellation.check());
    const Status status = decide(index);
    if (!status.ok()) return with_argument(status, absl::StrCat("feeds[", index, "]"));
  }
  for (size_t index = 0; index < feeds_.size(); ++index) {
    if (parts_[index].change.encoded_tokens == 0) continue;
    const StatusOr<Energies> energies = encode_run(*feeds_[index].sequence, parts_[index].change, parts_[index].kept,
                                                   scratch_.data(), rules_.cancellation);
    if (!energies.ok()) return with_argument(energies.status(), absl::StrCat("feeds[", index, "]"));
    parts_[index].energies = *energies;
  }
  FOLDKV_RETURN_IF_ERROR(observe());
  std::vector<int32_t> buffer;
  for (size_t index = 0; index < feeds_.size(); ++index) {
    buffer.resize(std::max(buffer.size(),
                           keep_buffer(feeds_[index].sequence->storage(), parts_[index].kept, parts_[index].change)));
  }
  FOLDKV_RETURN_IF_ERROR(gather(buffer));
  // From here on nothing can fail.
  for (size_t index = 0; index < feeds_.size(); ++index) {
    Sequence& sequence = *feeds_[index].sequence;
    const int64_t last = parts_[index].first_row + feeds_[index].token_count - 1;
    const int64_t next = parts_[index].kept.reindexed ? held_after(sequence.storage(), parts_[index].change)
                                                      : int64_t{positions_[static_cast<size_t>(last)]} + 1;
    sequence.publish(parts_[index].change, parts_[index].energies, next, !feeds_[index].continues);
    sequence.keep_record(parts_[index].record, feeds_[index].continues);
  }
  committed_ = true;
  runtime_->count_step();
  drop();
  return absl::OkStatus();
}

Status Step::gather(std::span<int32_t> buffer) {
  const PhaseTimer timer(runtime_->times(), Phase::kDecide);
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Status status = gather_kept(*feeds_[index].sequence, parts_[index].kept, parts_[index].change, buffer);
    if (status.ok()) continue;
    // Those before it were moved for a commit that does not come.
    for (size_t moved = 0; moved < index; ++moved) feeds_[moved].sequence->lose();
    return with_argument(status, absl::StrCat("feeds[", index, "]"));
  }
  return absl::OkStatus();
}

EvictionMoment Step::eviction_moment(size_t index) const {
  const Feed& feed = feeds_[index];
  return {parts_[index].change, feed.sequence->prompt_open() && !feed.continues, feed.continues, false};
}

Status Step::decide(size_t index) {
  const PhaseTimer timer(runtime_->times(), Phase::kDecide);
  Part& part = parts_[index];
  const Sequence& sequence = *feeds_[index].sequence;
  FOLDKV_ASSIGN_OR_RETURN(part.kept, decide_tokens(sequence, part.record, eviction_moment(index), scratch_.data()));
  count_kept(sequence.storage(), part.kept, part.change);
  return absl::OkStatus();
}

}  // namespace foldkv
