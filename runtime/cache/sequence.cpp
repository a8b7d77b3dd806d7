#include "runtime/cache/sequence.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/encode_run.h"

namespace foldkv {
namespace {

Status check_kernels(const backend::Backend& backend, const PreparedModel& model, const PreparedProfile& profile,
                     size_t plan) {
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    const GroupPlace place = profile.place_of_layer[layer];
    const backend::LatentLayout* layout =
        place.group < 0 ? nullptr : &profile.groups[static_cast<size_t>(place.group)].layouts[plan];
    const Status status = backend.check_attention(model.layers[layer].rules, layout);
    if (!status.ok()) return with_argument(status, absl::StrCat("layers[", layer, "]"));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<Sequence>> Sequence::create(std::shared_ptr<Runtime> runtime,
                                                     const std::shared_ptr<Model>& model,
                                                     const std::shared_ptr<const Profile>& profile,
                                                     const SequencePolicy& policy) {
  if (profile != nullptr) FOLDKV_RETURN_IF_ERROR(check_profile(*profile, *model));
  FOLDKV_ASSIGN_OR_RETURN(std::shared_ptr<const SharedModel> shared_model, runtime->share_model(model));
  FOLDKV_ASSIGN_OR_RETURN(std::shared_ptr<const SharedProfile> shared_profile,
                          runtime->share_profile(*model, profile));
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
  storage_.release(runtime_->arena());
  runtime_->arena().give_back();
  runtime_->count_sequence(-1);
}

Status Sequence::compress() {
  if (!try_acquire()) return with_argument(state_error("the sequence is part of an open step"), "sequence");
  const absl::Cleanup release = [this] { release_ownership(); };
  StorageChange change;
  change.encoded_tokens =
      encode_count(policy_, {storage_.grouped_exact_tokens(), storage_.latent_tokens() > 0, true, storage_.run_tokens()});
  return change.encoded_tokens > 0 ? encode_now(change) : absl::OkStatus();
}

Status Sequence::encode_now(const StorageChange& change) {
  Arena& arena = runtime_->arena();
  // Until the change is published this drops what was reserved; afterwards there is nothing to drop.
  const absl::Cleanup settle = [this, &arena] {
    storage_.rollback(arena);
    arena.give_back();
  };
  FOLDKV_RETURN_IF_ERROR(storage_.reserve(arena, change));
  const int64_t bytes = encode_workspace(runtime_->backend(), profile_->data, policy_.plan, change.encoded_tokens);
  FOLDKV_ASSIGN_OR_RETURN(const Block workspace, Block::allocate(arena, Role::kScratch, bytes));
  FOLDKV_ASSIGN_OR_RETURN(const Energies energies, encode_run(*this, change, workspace.data()));
  std::vector<int32_t> moved(moved_tokens(*this, change));
  FOLDKV_RETURN_IF_ERROR(close_gap(*this, change, moved));
  publish(change, energies, next_position_, true);
  return absl::OkStatus();
}

Status Sequence::attach(std::shared_ptr<Calibrator> calibrator) {
  if (calibrator != nullptr && calibrator->model().fingerprint() != model().fingerprint()) {
    return with_argument(mismatch_error("the calibrator was made for another model"), "calibrator");
  }
  if (storage_.has_groups()) {
    return with_argument(state_error("the sequence has a profile; calibration needs exact keys and values"),
                         "sequence");
  }
  if (storage_.token_count() > 0 && calibrator != nullptr) {
    return with_argument(state_error(absl::StrCat("the sequence holds ", storage_.token_count(),
                                                  " tokens already, expected none")),
                         "sequence");
  }
  if (!try_acquire()) return with_argument(state_error("the sequence is part of an open step"), "sequence");
  calibrator_ = std::move(calibrator);
  release_ownership();
  return absl::OkStatus();
}

Energies Sequence::expected_energies() const {
  const std::vector<Energies>& plans = profile_->data.expected_energies;
  return plans.empty() ? Energies{} : plans[policy_.plan];
}

void Sequence::publish(const StorageChange& change, const Energies& energies, int64_t next_position,
                       bool prompt_ends) {
  for (size_t side = 0; side < energies.size(); ++side) energies_[side] += energies[side];
  storage_.publish(runtime_->arena(), change);
  next_position_ = next_position;
  if (prompt_ends) prompt_open_ = false;
}

StatusOr<std::vector<int32_t>> Sequence::positions() const {
  std::vector<int32_t> positions(static_cast<size_t>(storage_.token_count()));
  if (positions.empty()) return positions;
  const ExactSet* set = &storage_.sets().front();
  for (const ExactSet& candidate : storage_.sets()) {
    if (candidate.grouped) set = &candidate;
  }
  backend::Backend& backend = runtime_->backend();
  const int64_t latents = set->grouped ? storage_.latent_tokens() : 0;
  const int64_t before = latents > 0 ? storage_.sink_slots() : set->token_count;
  FOLDKV_RETURN_IF_ERROR(read_positions(backend, set->positions, 0, before, positions.data()));
  FOLDKV_RETURN_IF_ERROR(
      read_positions(backend, storage_.latent_positions(), 0, latents, positions.data() + before));
  FOLDKV_RETURN_IF_ERROR(read_positions(backend, set->positions, before, set->token_count - before,
                                        positions.data() + before + latents));
  return positions;
}

backend::ExactRegion Sequence::exact_region(int64_t layer, int64_t token_count) const {
  return {storage_.exact_pages(layer).pages(), token_count};
}

backend::PositionRegion Sequence::exact_positions(int64_t layer) const {
  const PageList& pages = storage_.set_of(layer).positions;
  return {pages.pages(), pages.page_tokens()};
}

backend::PositionRegion Sequence::latent_positions() const {
  return {storage_.latent_positions().pages(), storage_.latent_positions().page_tokens()};
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
  return {&layout, slice(backend::Side::kKeys), slice(backend::Side::kValues), first_row};
}

const BasisPair& Sequence::bases(int64_t group, backend::Side side) const {
  const auto index = static_cast<size_t>(group);
  const PreparedGroup& prepared = profile_->data.groups[index];
  return prepared.kind == GroupKind::kSequence ? storage_.groups()[index].bases(side) : prepared.bases(side);
}

Status read_positions(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                      int32_t* positions) {
  while (count > 0) {
    const int64_t row = first % pages.page_tokens();
    const int64_t run = std::min(count, pages.page_tokens() - row);
    FOLDKV_RETURN_IF_ERROR(backend.copy_to_host(reinterpret_cast<std::byte*>(positions),
                                                pages.page_of(first) + row * 4, run * 4));
    first += run;
    count -= run;
    positions += run;
  }
  return absl::OkStatus();
}

Status write_positions(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                       const int32_t* positions) {
  while (count > 0) {
    const int64_t row = first % pages.page_tokens();
    const int64_t run = std::min(count, pages.page_tokens() - row);
    FOLDKV_RETURN_IF_ERROR(backend.copy_to_device(pages.page_of(first) + row * 4,
                                                  reinterpret_cast<const std::byte*>(positions), run * 4));
    first += run;
    count -= run;
    positions += run;
  }
  return absl::OkStatus();
}

}  // namespace foldkv
