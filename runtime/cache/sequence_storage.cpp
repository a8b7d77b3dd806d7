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
      source_of_layer_(profile.source_of_layer),
      latent_positions_(Role::kPositions, kLatentPageTokens, kLatentPageTokens * 4) {
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    exact_layouts_.push_back({kExactPageTokens, model.layer(layer).key_width(), policy.format});
    exact_pages_.emplace_back(Role::kExact, kExactPageTokens, exact_layouts_.back().page_bytes());
    const bool grouped = profile.place_of_layer[static_cast<size_t>(layer)].group >= 0;
    auto set = std::find_if(sets_.begin(), sets_.end(), [&](const ExactSet& s) { return s.grouped == grouped; });
    if (set == sets_.end()) {
      sets_.emplace_back();
      sets_.back().grouped = grouped;
      set = std::prev(sets_.end());
    }
    if (stores(layer)) set->layers.push_back(static_cast<int32_t>(layer));
    set_of_layer_.push_back(static_cast<int32_t>(set - sets_.begin()));
  }
  for (const PreparedGroup& group : profile.groups) {
    const backend::LatentLayout& layout = group.layouts[policy.plan];
    groups_.push_back({PageList(Role::kLatent, layout.page_tokens, layout.page_bytes), {}, {}, {}, {}, {}});
    group_sizes_.push_back(sizes_of(group, layout));
    run_tokens_ = std::max(run_tokens_, layout.run_tokens());
  }
  own_means_ = profile.profile != nullptr && profile.profile->centred && policy.mean == MeanSource::kSequence;
}

Status SequenceStorage::reserve(Allocator& allocator, const StorageChange& change) {
  Status status = reserve_exact(allocator, change.new_tokens);
  if (status.ok() && change.encoded_tokens > 0) status = reserve_latent(allocator, change.encoded_tokens);
  if (!status.ok()) rollback(allocator);
  return status;
}

Status SequenceStorage::reserve_exact(Allocator& allocator, int64_t new_tokens) {
  for (ExactSet& set : sets_) {
    FOLDKV_RETURN_IF_ERROR(set.positions.grow(allocator, set.token_count + new_tokens));
    for (int32_t layer : set.layers) {
      PageList& pages = exact_pages_[static_cast<size_t>(layer)];
      FOLDKV_RETURN_IF_ERROR(pages.grow(allocator, set.token_count + new_tokens));
    }
  }
  return absl::OkStatus();
}

Status SequenceStorage::reserve_latent(Allocator& allocator, int64_t encoded_tokens) {
  FOLDKV_RETURN_IF_ERROR(latent_positions_.grow(allocator, latent_tokens_ + encoded_tokens));
  for (GroupStorage& group : groups_) {
    FOLDKV_RETURN_IF_ERROR(group.pages.grow(allocator, latent_tokens_ + encoded_tokens));
  }
  return latent_tokens_ > 0 ? absl::OkStatus() : reserve_sequence_blocks(allocator);
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
    for (size_t index = 0; index < sets_.size(); ++index) {
      const int64_t tokens = source.sets_[index].token_count;
      FOLDKV_RETURN_IF_ERROR(sets_[index].positions.grow(allocator, tokens));
      for (int32_t layer : sets_[index].layers) {
        FOLDKV_RETURN_IF_ERROR(exact_pages_[static_cast<size_t>(layer)].grow(allocator, tokens));
      }
    }
    return source.latent_tokens_ > 0 ? reserve_latent(allocator, source.latent_tokens_) : absl::OkStatus();
  };
  if (const Status status = grow(); !status.ok()) {
    rollback(allocator);
    return status;
  }
  token_count_ = source.token_count_;
  latent_tokens_ = source.latent_tokens_;
  for (size_t index = 0; index < sets_.size(); ++index) sets_[index].token_count = source.sets_[index].token_count;
  return absl::OkStatus();
}

void SequenceStorage::rollback(Allocator& allocator) {
  for (ExactSet& set : sets_) {
    set.positions.shrink(allocator, set.token_count);
    for (int32_t layer : set.layers) exact_pages_[static_cast<size_t>(layer)].shrink(allocator, set.token_count);
  }
  latent_positions_.shrink(allocator, latent_tokens_);
  for (GroupStorage& group : groups_) {
    group.pages.shrink(allocator, latent_tokens_);
    if (latent_tokens_ > 0) continue;
    group.key_mean.reset();
    group.value_mean.reset();
    group.correction_basis.reset();
    group.keys = {};
    group.values = {};
  }
}

void SequenceStorage::publish(Allocator& allocator, const StorageChange& change) {
  token_count_ += change.new_tokens;
  latent_tokens_ += change.encoded_tokens;
  for (ExactSet& set : sets_) {
    set.token_count += change.new_tokens - (set.grouped ? change.encoded_tokens : 0);
  }
  rollback(allocator);  // what is beyond the new counts is not needed any more
}

void SequenceStorage::release(Allocator& allocator) {
  token_count_ = 0;
  latent_tokens_ = 0;
  for (ExactSet& set : sets_) set.token_count = 0;
  rollback(allocator);
}

int64_t SequenceStorage::grouped_exact_tokens() const {
  for (const ExactSet& set : sets_) {
    if (set.grouped) return set.token_count;
  }
  return 0;
}

Ledger SequenceStorage::ledger() const {
  Ledger ledger;
  for (const ExactSet& set : sets_) ledger.charge(Role::kPositions, set.positions.bytes());
  for (const PageList& pages : exact_pages_) ledger.charge(Role::kExact, pages.bytes());
  ledger.charge(Role::kPositions, latent_positions_.bytes());
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
