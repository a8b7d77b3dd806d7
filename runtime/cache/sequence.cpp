#include "runtime/cache/sequence.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/attention_record.h"
#include "runtime/cache/check_eviction.h"
#include "runtime/cache/check_kernels.h"
#include "runtime/cache/decide_tokens.h"
#include "runtime/cache/due_sets.h"
#include "runtime/cache/encode_run.h"
#include "runtime/cache/eviction_needs.h"
#include "runtime/cache/token_pages.h"
#include "runtime/cache/token_run.h"

namespace foldkv {
StatusOr<std::shared_ptr<Sequence>> Sequence::create(std::shared_ptr<Runtime> runtime,
                                                     const std::shared_ptr<Model>& model,
                                                     const std::shared_ptr<const Profile>& profile,
                                                     const SequencePolicy& policy) {
  if (profile != nullptr) FOLDKV_RETURN_IF_ERROR(check_profile(*profile, *model));
  std::shared_ptr<const SharedModel> shared_model;
  std::shared_ptr<const SharedProfile> shared_profile;
  FOLDKV_RETURN_IF_ERROR(runtime->with_room([&]() -> Status {
    FOLDKV_ASSIGN_OR_RETURN(shared_model, runtime->share_model(model));
    FOLDKV_ASSIGN_OR_RETURN(shared_profile, runtime->share_profile(*model, profile, policy.arithmetic));
    return absl::OkStatus();
  }));
  const Status eviction = check_eviction(*model, shared_profile->data, policy);
  if (!eviction.ok()) return eviction;
  FOLDKV_RETURN_IF_ERROR(check_kernels(runtime->backend(), shared_model->data, shared_profile->data, policy.plan));
  model->freeze();
  return std::shared_ptr<Sequence>(
      new Sequence(std::move(runtime), std::move(shared_model), std::move(shared_profile), policy));
}

Sequence::Sequence(std::shared_ptr<Runtime> runtime, std::shared_ptr<const SharedModel> model,
                   std::shared_ptr<const SharedProfile> profile, const SequencePolicy& policy)
    : runtime_(std::move(runtime)),
      model_(std::move(model)),
      profile_(std::move(profile)),
      policy_(policy),
      storage_(*model_->data.model, profile_->data, policy) {
  runtime_->count_sequence(1);
}

Sequence::~Sequence() {
  if (spilled_pieces_ != nullptr) runtime_->count_spilled(-1, -spilled_pieces_->bytes());
  storage_.release(runtime_->arena());
  runtime_->arena().give_back();
  runtime_->count_sequence(-1);
}

Status Sequence::begin_change() {
  if (!use_.try_writing()) {
    return with_argument(state_error("the sequence is part of an open step, or in use by another call"), "sequence");
  }
  absl::Cleanup undo = [this] { end_change(); };
  FOLDKV_RETURN_IF_ERROR(check_held());
  FOLDKV_RETURN_IF_ERROR(bring_back());
  std::move(undo).Cancel();
  return absl::OkStatus();
}

Status Sequence::check_held() const {
  if (!lost_) return absl::OkStatus();
  return with_argument(state_error("the sequence has lost its tokens: the backend failed while they were moved"),
                       "sequence");
}

Status Sequence::Reader::status() const {
  FOLDKV_RETURN_IF_ERROR(sequence_.check_held());
  return shared_ ? sequence_.bring_back() : absl::OkStatus();
}

Status Sequence::Reader::between_steps() const {
  if (!shared_) return with_argument(state_error("the sequence is part of an open step"), "sequence");
  return status();
}

Status Sequence::compress() {
  FOLDKV_RETURN_IF_ERROR(begin_change());
  const absl::Cleanup end = [this] { end_change(); };
  StorageChange change;
  change.encoded_tokens = encode_count(
      policy_, {storage_.grouped_exact_tokens(), storage_.latent_tokens() > 0, true, storage_.run_tokens()});
  if (change.encoded_tokens == 0 && policy_.eviction == nullptr) return absl::OkStatus();
  return runtime_->with_room([&] { return compress_now(change); });
}

Status Sequence::compress_now(StorageChange change) {
  Arena& arena = runtime_->arena();
  // Until the change is published this drops what was reserved; afterwards there is nothing to drop.
  const absl::Cleanup settle = [this, &arena] {
    storage_.rollback(arena);
    arena.give_back();
  };
  AttentionRecord record(*this, 0);
  // A policy that goes by the last queries, all of which were truncated, has nothing to go by.
  const bool blind = life_.prompt_open && policy_.eviction != nullptr && record.window_rows() == 0 &&
                     attention_needs(policy_.eviction->policy, true, storage_.token_count()).window_rows > 0;
  change.due = due_sets(policy_, storage_, {change, life_.prompt_open, blind, true});
  FOLDKV_RETURN_IF_ERROR(storage_.reserve(arena, change));
  const EvictionMoment moment{change, life_.prompt_open, blind, true};
  FOLDKV_ASSIGN_OR_RETURN(int64_t bytes, decide_workspace(*runtime_, model_->data, profile_->data, policy_, storage_,
                                                          record.plan(), moment));
  if (change.encoded_tokens > 0) {
    bytes = std::max(bytes, encode_workspace(runtime_->backend(), profile_->data, policy_.plan, change.encoded_tokens));
  }
  bytes = round_up(bytes, kBlockAlignment);
  FOLDKV_ASSIGN_OR_RETURN(const Block scratch, Block::allocate(arena, Role::kScratch, bytes + record.scratch_bytes()));
  FOLDKV_RETURN_IF_ERROR(record.begin(arena, scratch.data() + bytes));
  FOLDKV_ASSIGN_OR_RETURN(const KeptTokens kept, decide_tokens(*this, record, moment, scratch.data()));
  count_kept(storage_, kept, change);
  Energies energies;
  if (change.encoded_tokens > 0) {
    FOLDKV_ASSIGN_OR_RETURN(energies, encode_run(*this, change, kept, scratch.data()));
  }
  std::vector<int32_t> buffer(keep_buffer(storage_, kept, change));
  FOLDKV_RETURN_IF_ERROR(gather_kept(*this, kept, change, buffer));
  publish(change, energies, kept.reindexed ? held_after(storage_, change) : life_.next_position, true);
  keep_record(record, false);
  return absl::OkStatus();
}

void Sequence::keep_record(AttentionRecord& record, bool prompt_continues) {
  window_ = prompt_continues ? record.take_window() : QueryWindow{};
  if (record.forecasts()) moments_ = record.take_moments();
  const bool generation = policy_.eviction != nullptr && policy_.eviction->policy.selection.interval > 0;
  if (!prompt_continues && !generation) moments_ = {};
}

Status Sequence::attach(std::shared_ptr<Calibrator> calibrator) {
  if (calibrator != nullptr && calibrator->model().fingerprint() != model().fingerprint()) {
    return with_argument(mismatch_error("the calibrator was made for another model"), "calibrator");
  }
  if (storage_.has_groups()) {
    return with_argument(state_error("the sequence has a profile; calibration needs exact keys and values"),
                         "sequence");
  }
  if (policy_.eviction != nullptr) {
    return with_argument(state_error("the sequence evicts tokens; calibration needs all keys and values"), "sequence");
  }
  if (storage_.token_count() > 0 && calibrator != nullptr) {
    return with_argument(
        state_error(absl::StrCat("the sequence holds ", storage_.token_count(), " tokens already, expected none")),
        "sequence");
  }
  FOLDKV_RETURN_IF_ERROR(begin_change());
  calibrator_ = std::move(calibrator);
  end_change();
  return absl::OkStatus();
}

Ledger Sequence::ledger() const {
  const std::lock_guard<std::mutex> lock(residency_);
  Ledger ledger = storage_.ledger();
  ledger.charge(Role::kPositions, window_.memory.charged_bytes() + moments_.memory.charged_bytes());
  return ledger;
}

int64_t Sequence::shared_bytes() const {
  const std::lock_guard<std::mutex> lock(residency_);
  return storage_.shared_bytes(runtime_->arena()) + window_.memory.shared_bytes() + moments_.memory.shared_bytes();
}

Energies Sequence::expected_energies() const {
  const std::vector<Energies>& plans = profile_->data.expected_energies;
  return plans.empty() ? Energies{} : plans[policy_.plan];
}

void Sequence::publish(const StorageChange& change, const Energies& energies, int64_t next_position, bool prompt_ends) {
  for (size_t side = 0; side < energies.size(); ++side) life_.energies[side] += energies[side];
  storage_.publish(runtime_->arena(), change);
  life_.next_position = next_position;
  if (change.evicts) life_.evicted_before = next_position;
  if (!prompt_ends || !life_.prompt_open) return;
  life_.prompt_open = false;
  life_.prompt_end = next_position;
  warn_of_losses();
}

// Text that loses far more than the calibration's is unlike what the profile was made from.
void Sequence::warn_of_losses() const {
  constexpr double kFarAbove = 3.0;
  const Energies expected = expected_energies();
  for (size_t side = 0; side < expected.size(); ++side) {
    const double lost = life_.energies[side].share_lost();
    if (expected[side].total == 0.0 || lost <= kFarAbove * expected[side].share_lost()) continue;
    runtime_->log(LogLevel::kWarning, [&] {
      return absl::StrCat("compression lost ", lost, " of the energy of the ", side == 0 ? "keys" : "values",
                          " of a prompt, expected ", expected[side].share_lost(),
                          ": the text is unlike what the profile was made from");
    });
  }
}

bool Sequence::heads_agree(int64_t layer) const {
  const std::span<const ExactPlane> planes = storage_.planes_of(layer);
  return planes.size() == 1 || std::all_of(planes.begin(), planes.end(), [&](const ExactPlane& plane) {
           return storage_.set_of(plane).token_count == storage_.token_count();
         });
}

int64_t Sequence::latent_tokens_of(int64_t layer) const {
  const GroupPlace place = profile_->data.place_of_layer[static_cast<size_t>(layer)];
  return place.group < 0 ? 0 : storage_.latent_tokens(place.group);
}

int64_t Sequence::held_tokens(int64_t layer, int64_t head) const {
  return storage_.set_of(layer, head).token_count + latent_tokens_of(layer);
}

StatusOr<std::vector<int32_t>> Sequence::positions(int64_t layer, int64_t head) const {
  const Reader reader(*this);
  FOLDKV_RETURN_IF_ERROR(reader.status());
  return held_positions(layer, head);
}

StatusOr<std::vector<int32_t>> Sequence::held_positions(int64_t layer, int64_t head) const {
  std::vector<int32_t> positions(static_cast<size_t>(held_tokens(layer, head)));
  for (int64_t token = 0; token < std::ssize(positions);) {
    const TokenRun run = token_run(*this, layer, head, token);
    const GroupPlace place = profile_->data.place_of_layer[static_cast<size_t>(layer)];
    const PageList& pages =
        run.region == Region::kExact ? storage_.set_of(layer, head).tokens : storage_.latent_set_of(place.group).tokens;
    FOLDKV_RETURN_IF_ERROR(read_positions(runtime_->backend(), pages, run.slot, run.count, positions.data() + token));
    token += run.count;
  }
  return positions;
}

StatusOr<std::vector<int32_t>> Sequence::positions() const {
  const Reader reader(*this);
  FOLDKV_RETURN_IF_ERROR(reader.status());
  std::vector<int32_t> all;
  std::vector<int32_t> merged;
  for (const ExactSet& set : storage_.exact_sets()) {
    const ExactPlane& plane = storage_.planes()[static_cast<size_t>(set.planes.front())];
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> held, held_positions(plane.layer, plane.first_head));
    merged.clear();
    std::set_union(all.begin(), all.end(), held.begin(), held.end(), std::back_inserter(merged));
    all.swap(merged);
  }
  return all;
}

backend::AttendSequence Sequence::attend_view(const ExactPlane& plane, int64_t layer, int64_t new_tokens) const {
  const ExactSet& set = storage_.set_of(plane);
  backend::AttendSequence view;
  view.exact = {plane.pages.pages(), set.token_count + new_tokens};
  view.exact_positions = {set.tokens.pages(), set.tokens.page_tokens()};
  if (plane.head_count < model().layer(layer).kv_heads) {
    view.first_head = plane.first_head;
    view.head_count = plane.head_count;
  }
  const GroupPlace place = profile_->data.place_of_layer[static_cast<size_t>(layer)];
  if (place.group < 0) return view;
  const LatentSet& latents = storage_.latent_set_of(place.group);
  view.latent = latent_region(place.group, latents.token_count);
  view.latent_positions = {latents.tokens.pages(), latents.tokens.page_tokens()};
  return view;
}

backend::LatentRegion Sequence::latent_region(int64_t group, int64_t token_count) const {
  const GroupStorage& storage = storage_.groups()[static_cast<size_t>(group)];
  const PreparedGroup& prepared = profile_->data.groups[static_cast<size_t>(group)];
  const auto halves = [](const Block& block) { return reinterpret_cast<const uint16_t*>(block.data()); };
  backend::LatentRegion region;
  region.pages = storage.pages.pages();
  region.token_count = token_count;
  if (profile_->data.profile->centred) {
    region.key_mean = halves(storage.key_mean ? storage.key_mean : prepared.key_mean);
    region.value_mean = halves(storage.value_mean ? storage.value_mean : prepared.value_mean);
  }
  region.correction_basis = halves(storage.correction_basis);
  return region;
}

backend::LatentLayer Sequence::latent_layer(int64_t layer) const {
  const GroupPlace place = profile_->data.place_of_layer[static_cast<size_t>(layer)];
  if (place.group < 0) return {};
  const PreparedGroup& group = profile_->data.groups[static_cast<size_t>(place.group)];
  const int64_t first_row = place.index * group.key_width;
  const backend::LatentLayout& layout = group.layouts[policy_.plan];
  const auto slice = [&](backend::Side side) {
    const float* const basis = bases(place.group, side).rebuilding();
    return basis == nullptr ? nullptr : basis + first_row * layout.plane(side).width;
  };
  return {&layout, slice(backend::Side::kKeys), slice(backend::Side::kValues), first_row, group.fast_keys.data()};
}

const BasisPair& Sequence::bases(int64_t group, backend::Side side) const {
  const auto index = static_cast<size_t>(group);
  const PreparedGroup& prepared = profile_->data.groups[index];
  return prepared.kind == GroupKind::kSequence ? storage_.groups()[index].bases(side) : prepared.bases(side);
}

}  // namespace foldkv
