#include "runtime/cache/sequence_storage.h"

#include <algorithm>

#include "runtime/codec/latent_layout.h"

namespace foldkv {
namespace {

GroupSizes sizes_of(const PreparedGroup& group, const backend::LatentLayout& layout) {
  GroupSizes sizes;
  sizes.width = group.stacked_width();
  sizes.correction = sizes.width * group.correction.rank;
  if (group.kind != GroupKind::kSequence) return sizes;
  sizes.key_basis = sizes.width * layout.keys.width;
  sizes.value_basis = sizes.width * layout.values.width;
  sizes.has_projections = !layout.keys.halves();
  return sizes;
}

Status allocate_bases(Allocator& allocator, int64_t numbers, bool has_projection, BasisPair& bases) {
  FOLDKV_ASSIGN_OR_RETURN(bases.basis, Block::allocate(allocator, Role::kCorrection, numbers * 4));
  if (!has_projection) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(bases.projection, Block::allocate(allocator, Role::kCorrection, numbers * 4));
  return absl::OkStatus();
}

}  // namespace

SequenceStorage::SequenceStorage(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy)
    : policy_(policy),
      sets_(make_token_sets(model, profile, policy)),
      source_of_layer_(profile.source_of_layer) {
  for (const PreparedGroup& group : profile.groups) {
    const backend::LatentLayout& layout = group.layouts[policy.plan];
    groups_.push_back({PageList(Role::kLatent, layout.page_tokens, layout.page_bytes), {}, {}, {}, {}, {}});
    group_sizes_.push_back(sizes_of(group, layout));
    run_tokens_ = std::max(run_tokens_, layout.run_tokens());
  }
  own_means_ = profile.profile != nullptr && profile.profile->centred && policy.mean == MeanSource::kSequence;
}

Status SequenceStorage::reserve(Allocator& allocator, const StorageChange& change) {
  const auto grow = [&]() -> Status {
    for (size_t set = 0; set < sets_.exact.size(); ++set) {
      FOLDKV_RETURN_IF_ERROR(grow_exact(allocator, set, sets_.exact[set].token_count + change.new_tokens));
    }
    if (change.encoded_tokens == 0) return absl::OkStatus();
    for (size_t set = 0; set < sets_.latent.size(); ++set) {
      FOLDKV_RETURN_IF_ERROR(grow_latent(allocator, set, sets_.latent[set].token_count + change.encoded_tokens));
    }
    return has_latents_ ? absl::OkStatus() : reserve_sequence_blocks(allocator);
  };
  const Status status = grow();
  if (!status.ok()) rollback(allocator);
  return status;
}

Status SequenceStorage::grow_exact(Allocator& allocator, size_t set, int64_t tokens) {
  FOLDKV_RETURN_IF_ERROR(sets_.exact[set].tokens.grow(allocator, tokens));
  for (int32_t plane : sets_.exact[set].planes) {
    FOLDKV_RETURN_IF_ERROR(sets_.planes[static_cast<size_t>(plane)].pages.grow(allocator, tokens));
  }
  return absl::OkStatus();
}

Status SequenceStorage::grow_latent(Allocator& allocator, size_t set, int64_t tokens) {
  FOLDKV_RETURN_IF_ERROR(sets_.latent[set].tokens.grow(allocator, tokens));
  for (int32_t group : sets_.latent[set].groups) {
    FOLDKV_RETURN_IF_ERROR(groups_[static_cast<size_t>(group)].pages.grow(allocator, tokens));
  }
  return absl::OkStatus();
}

Status SequenceStorage::reserve_sequence_blocks(Allocator& allocator) {
  for (size_t index = 0; index < groups_.size(); ++index) {
    GroupStorage& group = groups_[index];
    const GroupSizes& sizes = group_sizes_[index];
    if (own_means_) {
      FOLDKV_ASSIGN_OR_RETURN(group.key_mean, Block::allocate(allocator, Role::kMean, sizes.width * 2));
      FOLDKV_ASSIGN_OR_RETURN(group.value_mean, Block::allocate(allocator, Role::kMean, sizes.width * 2));
    }
    if (sizes.correction > 0) {
      FOLDKV_ASSIGN_OR_RETURN(group.correction_basis,
                              Block::allocate(allocator, Role::kCorrection, sizes.correction * 2));
    }
    if (sizes.key_basis == 0) continue;
    FOLDKV_RETURN_IF_ERROR(allocate_bases(allocator, sizes.key_basis, sizes.has_projections, group.keys));
    FOLDKV_RETURN_IF_ERROR(allocate_bases(allocator, sizes.value_basis, sizes.has_projections, group.values));
  }
  return absl::OkStatus();
}

Status SequenceStorage::reserve_copy(Allocator& allocator, const SequenceStorage& source) {
  const auto grow = [&]() -> Status {
    for (size_t set = 0; set < sets_.exact.size(); ++set) {
      FOLDKV_RETURN_IF_ERROR(grow_exact(allocator, set, source.sets_.exact[set].token_count));
    }
    for (size_t set = 0; set < sets_.latent.size(); ++set) {
      FOLDKV_RETURN_IF_ERROR(grow_latent(allocator, set, source.sets_.latent[set].token_count));
    }
    return source.has_latents_ ? reserve_sequence_blocks(allocator) : absl::OkStatus();
  };
  if (const Status status = grow(); !status.ok()) {
    rollback(allocator);
    return status;
  }
  token_count_ = source.token_count_;
  has_latents_ = source.has_latents_;
  for (size_t set = 0; set < sets_.exact.size(); ++set) {
    sets_.exact[set].token_count = source.sets_.exact[set].token_count;
    sets_.exact[set].budget = source.sets_.exact[set].budget;
  }
  for (size_t set = 0; set < sets_.latent.size(); ++set) {
    sets_.latent[set].token_count = source.sets_.latent[set].token_count;
  }
  return absl::OkStatus();
}

void SequenceStorage::rollback(Allocator& allocator) {
  for (ExactSet& set : sets_.exact) {
    set.tokens.shrink(allocator, set.token_count);
    for (int32_t plane : set.planes) {
      sets_.planes[static_cast<size_t>(plane)].pages.shrink(allocator, set.token_count);
    }
  }
  for (LatentSet& set : sets_.latent) {
    set.tokens.shrink(allocator, set.token_count);
    for (int32_t group : set.groups) groups_[static_cast<size_t>(group)].pages.shrink(allocator, set.token_count);
  }
  if (has_latents_) return;
  for (GroupStorage& group : groups_) {
    group.key_mean.reset();
    group.value_mean.reset();
    group.correction_basis.reset();
    group.keys = {};
    group.values = {};
  }
}

void SequenceStorage::publish(Allocator& allocator, const StorageChange& change) {
  token_count_ += change.new_tokens;
  has_latents_ = has_latents_ || change.encoded_tokens > 0;
  for (size_t index = 0; index < sets_.exact.size(); ++index) {
    ExactSet& set = sets_.exact[index];
    set.token_count = change.exact_counts.empty()
                          ? set.token_count + change.new_tokens - (set.grouped ? change.encoded_tokens : 0)
                          : change.exact_counts[index];
    if (!change.budgets.empty()) set.budget = change.budgets[index];
  }
  for (size_t index = 0; index < sets_.latent.size(); ++index) {
    LatentSet& set = sets_.latent[index];
    set.token_count =
        change.latent_counts.empty() ? set.token_count + change.encoded_tokens : change.latent_counts[index];
  }
  rollback(allocator);  // what is beyond the new counts is not needed any more
}

void SequenceStorage::release(Allocator& allocator) {
  token_count_ = 0;
  has_latents_ = false;
  for (ExactSet& set : sets_.exact) set.token_count = 0;
  for (LatentSet& set : sets_.latent) set.token_count = 0;
  rollback(allocator);
}

int64_t SequenceStorage::latent_tokens() const {
  int64_t most = 0;
  for (const LatentSet& set : sets_.latent) most = std::max(most, set.token_count);
  return most;
}

int64_t SequenceStorage::grouped_exact_tokens() const {
  for (const ExactSet& set : sets_.exact) {
    if (set.grouped) return set.token_count;
  }
  return 0;
}

std::span<const ExactPlane> SequenceStorage::planes_of(int64_t layer) const {
  const auto source = static_cast<size_t>(source_of_layer_[static_cast<size_t>(layer)]);
  const auto first = static_cast<size_t>(sets_.first_plane[source]);
  return {sets_.planes.data() + first, static_cast<size_t>(sets_.first_plane[source + 1]) - first};
}

size_t SequenceStorage::set_index_of(const ExactPlane& plane) const {
  return static_cast<size_t>(sets_.set_of_plane[static_cast<size_t>(&plane - sets_.planes.data())]);
}

Ledger SequenceStorage::ledger() const {
  Ledger ledger;
  for (const ExactSet& set : sets_.exact) ledger.charge(Role::kPositions, set.tokens.bytes());
  for (const LatentSet& set : sets_.latent) ledger.charge(Role::kPositions, set.tokens.bytes());
  for (const ExactPlane& plane : sets_.planes) ledger.charge(Role::kExact, plane.pages.bytes());
  for (const GroupStorage& group : groups_) {
    ledger.charge(Role::kLatent, group.pages.bytes());
    ledger.charge(Role::kMean, group.key_mean.charged_bytes() + group.value_mean.charged_bytes());
    ledger.charge(Role::kCorrection, group.correction_basis.charged_bytes());
    for (const BasisPair* bases : {&group.keys, &group.values}) {
      ledger.charge(Role::kCorrection, bases->basis.charged_bytes() + bases->projection.charged_bytes());
    }
  }
  return ledger;
}

}  // namespace foldkv
