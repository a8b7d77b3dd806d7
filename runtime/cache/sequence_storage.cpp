#include "runtime/cache/sequence_storage.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/eviction_needs.h"
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

}  // namespace

Role block_role(size_t block) { return block < 2 ? Role::kMean : Role::kCorrection; }

std::array<Block*, 7> GroupStorage::blocks() {
  return {&key_mean, &value_mean, &correction_basis, &keys.basis, &keys.projection, &values.basis, &values.projection};
}

std::array<const Block*, 7> GroupStorage::blocks() const {
  std::array<const Block*, 7> all{};
  std::ranges::copy(const_cast<GroupStorage*>(this)->blocks(), all.begin());
  return all;
}

void GroupStorage::share(Allocator& allocator, const GroupStorage& source) {
  pages.share(allocator, source.pages);
  const auto targets = blocks();
  const auto sources = source.blocks();
  for (size_t index = 0; index < targets.size(); ++index) *targets[index] = sources[index]->share();
}

SequenceStorage::SequenceStorage(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy)
    : policy_(policy), sets_(make_token_sets(model, profile, policy)), source_of_layer_(profile.source_of_layer) {
  std::vector<PageList> lists = latent_lists(profile, policy.plan);
  for (const PreparedGroup& group : profile.groups) {
    const backend::LatentLayout& layout = group.layouts[policy.plan];
    groups_.push_back({std::move(lists[groups_.size()]), {}, {}, {}, {}, {}});
    group_sizes_.push_back(sizes_of(group, layout));
    run_tokens_ = std::max(run_tokens_, layout.run_tokens());
  }
  own_means_ = profile.profile != nullptr && profile.profile->centred && policy.mean == MeanSource::kSequence;
}

Status SequenceStorage::reserve(Allocator& allocator, const StorageChange& change) {
  absl::Cleanup undo = [&] { rollback(allocator); };
  FOLDKV_RETURN_IF_ERROR(grow(allocator, change));
  for (ExactSet& set : sets_.exact) FOLDKV_RETURN_IF_ERROR(own_exact(allocator, set, change));
  for (LatentSet& set : sets_.latent) FOLDKV_RETURN_IF_ERROR(own_latent(allocator, set, change));
  std::move(undo).Cancel();
  return absl::OkStatus();
}

Status SequenceStorage::grow(Allocator& allocator, const StorageChange& change) {
  for (ExactSet& set : sets_.exact) {
    const int64_t tokens = set.token_count + change.new_tokens;
    FOLDKV_RETURN_IF_ERROR(set.tokens.grow(allocator, tokens));
    for (int32_t plane : set.planes) FOLDKV_RETURN_IF_ERROR(pages_of(plane).grow(allocator, tokens));
  }
  if (change.encoded_tokens == 0) return absl::OkStatus();
  for (LatentSet& set : sets_.latent) {
    const int64_t tokens = set.token_count + change.encoded_tokens;
    FOLDKV_RETURN_IF_ERROR(set.tokens.grow(allocator, tokens));
    for (int32_t group : set.groups) {
      FOLDKV_RETURN_IF_ERROR(groups_[static_cast<size_t>(group)].pages.grow(allocator, tokens));
    }
  }
  return has_latents_ ? absl::OkStatus() : reserve_sequence_blocks(allocator);
}

// New tokens come behind those held. Where some leave, those behind them move up, to nobody knows where when an
// eviction decides.
Status SequenceStorage::own_exact(Allocator& allocator, ExactSet& set, const StorageChange& change) {
  const auto index = static_cast<size_t>(&set - sets_.exact.data());
  const int64_t end = set.token_count + change.new_tokens;
  const auto own = [&](PageList& pages, bool whole) -> Status {
    if (whole) return pages.make_own(allocator, 0, end);
    if (set.grouped && (change.encoded_tokens > 0 || change.restores)) {
      FOLDKV_RETURN_IF_ERROR(pages.make_own(allocator, sink_slots(), end - change.encoded_tokens));
    }
    return pages.make_own(allocator, set.token_count, end);
  };
  const bool due = change.is_due(index);
  FOLDKV_RETURN_IF_ERROR(own(set.tokens, due || rewrites_tokens(set, change)));
  for (int32_t plane : set.planes) FOLDKV_RETURN_IF_ERROR(own(pages_of(plane), due));
  return absl::OkStatus();
}

Status SequenceStorage::own_latent(Allocator& allocator, LatentSet& set, const StorageChange& change) {
  const int64_t end = set.token_count + change.encoded_tokens;
  const auto own = [&](PageList& pages, bool whole) {
    return pages.make_own(allocator, whole ? 0 : set.token_count, end);
  };
  const bool due = change.is_due(static_cast<size_t>(set.exact_set));
  const ExactSet& exact = sets_.exact[static_cast<size_t>(set.exact_set)];
  FOLDKV_RETURN_IF_ERROR(own(set.tokens, due || rewrites_tokens(exact, change)));
  for (int32_t group : set.groups) {
    GroupStorage& storage = groups_[static_cast<size_t>(group)];
    FOLDKV_RETURN_IF_ERROR(own(storage.pages, due));
    // A first run finds means and bases anew.
    if (set.token_count == 0 && change.encoded_tokens > 0) FOLDKV_RETURN_IF_ERROR(own_blocks(allocator, storage));
  }
  return absl::OkStatus();
}

Status SequenceStorage::own_blocks(Allocator& allocator, GroupStorage& group) {
  for (Block* block : group.blocks()) {
    if (block->shared_bytes() == 0) continue;
    FOLDKV_ASSIGN_OR_RETURN(Block own, Block::allocate(allocator, block->role(), block->bytes()));
    originals_.emplace_back(block, Block());
    originals_.back().second = std::move(*block);
    *block = std::move(own);
  }
  return absl::OkStatus();
}

// Whether positions or scores of all tokens of a set are written anew.
bool SequenceStorage::rewrites_tokens(const ExactSet& set, const StorageChange& change) const {
  if (policy_.eviction == nullptr) return false;
  const EvictionPolicy& policy = policy_.eviction->policy;
  const bool decides = std::find(change.due.begin(), change.due.end(), true) != change.due.end();
  return (set.evicts && remembers_scores(policy)) || (decides && policy.selection.reindexed);
}

std::array<int64_t, 7> SequenceStorage::block_sizes(size_t group) const {
  const GroupSizes& sizes = group_sizes_[group];
  const int64_t mean = own_means_ ? sizes.width * 2 : 0;
  const int64_t key_projection = sizes.has_projections ? sizes.key_basis * 4 : 0;
  const int64_t value_projection = sizes.has_projections ? sizes.value_basis * 4 : 0;
  return {
      mean, mean, sizes.correction * 2, sizes.key_basis * 4, key_projection, sizes.value_basis * 4, value_projection};
}

Status SequenceStorage::reserve_sequence_blocks(Allocator& allocator) {
  for (size_t index = 0; index < groups_.size(); ++index) {
    const std::array<int64_t, 7> sizes = block_sizes(index);
    const auto blocks = groups_[index].blocks();
    for (size_t block = 0; block < blocks.size(); ++block) {
      if (sizes[block] == 0) continue;
      FOLDKV_ASSIGN_OR_RETURN(*blocks[block], Block::allocate(allocator, block_role(block), sizes[block]));
    }
  }
  return absl::OkStatus();
}

Status SequenceStorage::reserve_rewrite(Allocator& allocator, int64_t layer, int64_t first, int64_t end) {
  absl::Cleanup undo = [&] { rollback(allocator); };
  for (const ExactPlane& plane : planes_of(layer)) {
    FOLDKV_RETURN_IF_ERROR(pages_of(&plane - sets_.planes.data()).make_own(allocator, first, end));
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

StorageCounts SequenceStorage::counts() const {
  StorageCounts counts{token_count_, has_latents_, {}, {}, {}};
  for (const ExactSet& set : sets_.exact) {
    counts.exact.push_back(set.token_count);
    counts.budgets.push_back(set.budget);
  }
  for (const LatentSet& set : sets_.latent) counts.latent.push_back(set.token_count);
  return counts;
}

void SequenceStorage::set_counts(const StorageCounts& counts) {
  token_count_ = counts.token_count;
  has_latents_ = counts.has_latents;
  for (size_t index = 0; index < sets_.exact.size(); ++index) {
    sets_.exact[index].token_count = counts.exact[index];
    sets_.exact[index].budget = counts.budgets[index];
  }
  for (size_t index = 0; index < sets_.latent.size(); ++index) sets_.latent[index].token_count = counts.latent[index];
}

void SequenceStorage::share(Allocator& allocator, const SequenceStorage& source) {
  set_counts(source.counts());
  for (size_t index = 0; index < sets_.exact.size(); ++index) {
    sets_.exact[index].tokens.share(allocator, source.sets_.exact[index].tokens);
  }
  for (size_t index = 0; index < sets_.planes.size(); ++index) {
    sets_.planes[index].pages.share(allocator, source.sets_.planes[index].pages);
  }
  for (size_t index = 0; index < sets_.latent.size(); ++index) {
    sets_.latent[index].tokens.share(allocator, source.sets_.latent[index].tokens);
  }
  for (size_t index = 0; index < groups_.size(); ++index) groups_[index].share(allocator, source.groups_[index]);
}

void SequenceStorage::rollback(Allocator& allocator) {
  for_each_list([&](PageList& pages, int64_t token_count) {
    pages.revert(allocator);
    pages.shrink(allocator, token_count);
  });
  for (auto& [block, original] : originals_) *block = std::move(original);
  originals_.clear();
  if (has_latents_) return;
  for (GroupStorage& group : groups_) {
    for (Block* block : group.blocks()) block->reset();
  }
}

void SequenceStorage::publish(Allocator& allocator, const StorageChange& change) {
  token_count_ += change.new_tokens - change.forgotten_tokens;
  has_latents_ = (has_latents_ || change.encoded_tokens > 0) && !change.forgets_runs;
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
  for_each_list([&](PageList& pages, int64_t) { pages.settle(allocator); });
  originals_.clear();
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

int64_t SequenceStorage::bytes_freed_by_encoding(int64_t tokens) const {
  const auto growth = [](const PageList& pages, int64_t before, int64_t change) {
    return (divide_up(before + change, pages.page_tokens()) - divide_up(before, pages.page_tokens())) *
           block_bytes(pages.page_bytes());
  };
  int64_t freed = 0;
  for (const ExactSet& set : sets_.exact) {
    if (!set.grouped) continue;
    freed -= growth(set.tokens, set.token_count, -tokens);
    for (int32_t plane : set.planes) {
      freed -= growth(sets_.planes[static_cast<size_t>(plane)].pages, set.token_count, -tokens);
    }
  }
  for (const LatentSet& set : sets_.latent) {
    freed -= growth(set.tokens, set.token_count, tokens);
    for (int32_t group : set.groups) {
      freed -= growth(groups_[static_cast<size_t>(group)].pages, set.token_count, tokens);
    }
  }
  return freed;
}

std::vector<PageList> SequenceStorage::latent_lists(const PreparedProfile& profile, size_t plan) {
  std::vector<PageList> lists;
  for (const PreparedGroup& group : profile.groups) {
    lists.emplace_back(Role::kLatent, group.layouts[plan].page_tokens, group.layouts[plan].page_bytes);
  }
  return lists;
}

void SequenceStorage::set_plan(size_t plan, std::vector<PageList>& lists) {
  for (size_t group = 0; group < groups_.size(); ++group) std::swap(groups_[group].pages, lists[group]);
  policy_.plan = plan;
}

void SequenceStorage::for_each_list(absl::FunctionRef<void(PageList&, int64_t)> visit) {
  for (ExactSet& set : sets_.exact) {
    visit(set.tokens, set.token_count);
    for (int32_t plane : set.planes) visit(pages_of(plane), set.token_count);
  }
  for (LatentSet& set : sets_.latent) {
    visit(set.tokens, set.token_count);
    for (int32_t group : set.groups) visit(groups_[static_cast<size_t>(group)].pages, set.token_count);
  }
}

void SequenceStorage::for_each_list(absl::FunctionRef<void(const PageList&, int64_t)> visit) const {
  // Visiting as such changes nothing.
  const_cast<SequenceStorage*>(this)->for_each_list(
      [&](PageList& pages, int64_t token_count) { visit(pages, token_count); });
}

Ledger SequenceStorage::ledger() const {
  Ledger ledger;
  for_each_list([&](const PageList& pages, int64_t) { ledger.charge(pages.role(), pages.bytes()); });
  for (const GroupStorage& group : groups_) {
    for (const Block* block : group.blocks()) ledger.charge(block->role(), block->charged_bytes());
  }
  return ledger;
}

int64_t SequenceStorage::shared_bytes(const Allocator& allocator) const {
  int64_t bytes = 0;
  for_each_list([&](const PageList& pages, int64_t) { bytes += pages.shared_bytes(allocator); });
  for (const GroupStorage& group : groups_) {
    for (const Block* block : group.blocks()) bytes += block->shared_bytes();
  }
  return bytes;
}

}  // namespace foldkv
