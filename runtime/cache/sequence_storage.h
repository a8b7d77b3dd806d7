#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/interface/layout.h"
#include "runtime/cache/token_sets.h"

namespace foldkv {

struct GroupStorage {
  PageList pages;
  Block key_mean, value_mean;  // f16; absent while the sequence has no mean of its own
  Block correction_basis;      // f16
  BasisPair keys, values;      // absent while the sequence has no bases of its own

  [[nodiscard]] const BasisPair& bases(backend::Side side) const {
    return side == backend::Side::kKeys ? keys : values;
  }
  // All that is not pages; some may be absent.
  [[nodiscard]] std::array<Block*, 7> blocks();
  [[nodiscard]] std::array<const Block*, 7> blocks() const;
  void share(Allocator& allocator, const GroupStorage& source);
};

// Of a group's blocks, in the order of GroupStorage::blocks().
[[nodiscard]] Role block_role(size_t block);

// Numbers of what a sequence holds once for a group.
struct GroupSizes {
  int64_t width = 0;  // stacked
  int64_t correction = 0;
  int64_t key_basis = 0;  // 0: no bases of its own
  int64_t value_basis = 0;
  bool has_projections = false;
};

// How many tokens a sequence holds where.
struct StorageCounts {
  int64_t token_count = 0;
  bool has_latents = false;
  std::vector<int64_t> exact;        // of each exact set
  std::vector<TokenBudget> budgets;  // likewise
  std::vector<int64_t> latent;       // of each latent set
};

// What one step or one call to compress adds and moves.
struct StorageChange {
  int64_t new_tokens = 0;
  int64_t forgotten_tokens = 0;  // of the newest: they were never fed
  bool forgets_runs = false;     // nothing was ever encoded
  bool restores = false;         // the new tokens were latents: they will stand right behind the sinks
  int64_t encoded_tokens = 0;    // of each grouped set, from the first slot after the sinks on: they leave it
  std::vector<bool> due;         // exact sets that may be cut (due_sets.h); empty: none
  // What is left of sets after eviction, decided after the change was reserved; empty: nothing is evicted.
  std::vector<int64_t> exact_counts;   // of each exact set; of a grouped one as without eviction
  std::vector<int64_t> latent_counts;  // of each latent set, the encoded run's included
  std::vector<TokenBudget> budgets;    // of each exact set; empty: as they are
  bool evicts = false;                 // some set loses tokens

  [[nodiscard]] bool is_due(size_t exact_set) const { return !due.empty() && due[exact_set]; }
};

// The pages of one sequence. reserve / publish / rollback are a transaction; the same code runs on an arena and on a
// counting allocator, which is how estimates are made. Owns its pages through the allocator given to every call;
// release must be called before destruction.
class SequenceStorage {
 public:
  SequenceStorage(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy);

  // Room for the change, in pages that no other sequence holds; or a budget error and nothing has changed.
  [[nodiscard]] Status reserve(Allocator& allocator, const StorageChange& change);
  // Exact rows of one layer, slots [first, end), may be written; likewise.
  [[nodiscard]] Status reserve_rewrite(Allocator& allocator, int64_t layer, int64_t first, int64_t end);
  // Holds the pages of source as well, and its counts. This storage is empty, and both were made of equal arguments.
  void share(Allocator& allocator, const SequenceStorage& source);
  // Drops what reserve added.
  void rollback(Allocator& allocator);
  // Makes the change count. The caller has moved the rows (see first_kept_slot) and written the latents.
  void publish(Allocator& allocator, const StorageChange& change);
  void release(Allocator& allocator);

  [[nodiscard]] StorageCounts counts() const;
  // For who restores a sequence: pages and blocks come by the lists.
  void set_counts(const StorageCounts& counts);
  // Bytes of each of a group's blocks once a run has been encoded; 0: none.
  [[nodiscard]] std::array<int64_t, 7> block_sizes(size_t group) const;
  [[nodiscard]] std::vector<GroupStorage>& groups() { return groups_; }

  // Fed so far, whether they are still held or not.
  [[nodiscard]] int64_t token_count() const { return token_count_; }
  // Held by a group as latents.
  [[nodiscard]] int64_t latent_tokens(int64_t group) const { return latent_set_of(group).token_count; }
  // The most that a group holds; 0 without groups.
  [[nodiscard]] int64_t latent_tokens() const;
  // A run has been encoded, so that means and bases are known. (All of it may have been evicted since.)
  [[nodiscard]] bool has_latents() const { return has_latents_; }
  // Of an exact set over which an eviction policy decides: latents that its layers hold besides, and all tokens,
  // new_tokens that are not published included.
  [[nodiscard]] int64_t latents_beside(const ExactSet& set) const { return set.grouped ? latent_tokens(set.group) : 0; }
  [[nodiscard]] int64_t tokens_of(const ExactSet& set, int64_t new_tokens) const {
    return latents_beside(set) + set.token_count + new_tokens;
  }
  // Exact tokens in layers that belong to a group; 0 without groups.
  [[nodiscard]] int64_t grouped_exact_tokens() const;
  [[nodiscard]] bool has_groups() const { return !groups_.empty(); }
  // Encoded runs are multiples of so many tokens.
  [[nodiscard]] int64_t run_tokens() const { return run_tokens_; }
  // Slot at which encoded runs begin.
  [[nodiscard]] int64_t sink_slots() const { return policy_.sink_tokens; }

  [[nodiscard]] const std::vector<ExactSet>& exact_sets() const { return sets_.exact; }
  [[nodiscard]] const std::vector<LatentSet>& latent_sets() const { return sets_.latent; }
  [[nodiscard]] int64_t latent_index_of(int64_t group) const {
    return sets_.latent_of_group[static_cast<size_t>(group)];
  }
  [[nodiscard]] const LatentSet& latent_set_of(int64_t group) const {
    return sets_.latent[static_cast<size_t>(latent_index_of(group))];
  }
  // Of the layer that this one reads, itself as a rule: one for all heads, or one for each.
  [[nodiscard]] std::span<const ExactPlane> planes_of(int64_t layer) const;
  [[nodiscard]] const ExactPlane& plane_of(int64_t layer, int64_t head = 0) const {
    const std::span<const ExactPlane> planes = planes_of(layer);
    return planes[planes.size() == 1 ? 0 : static_cast<size_t>(head)];
  }
  [[nodiscard]] size_t set_index_of(const ExactPlane& plane) const;
  [[nodiscard]] const ExactSet& set_of(const ExactPlane& plane) const { return sets_.exact[set_index_of(plane)]; }
  [[nodiscard]] const ExactSet& set_of(int64_t layer, int64_t head = 0) const { return set_of(plane_of(layer, head)); }
  [[nodiscard]] int64_t layer_count() const { return std::ssize(source_of_layer_); }
  [[nodiscard]] const std::vector<ExactPlane>& planes() const { return sets_.planes; }
  // False for a layer that reads another one.
  [[nodiscard]] bool stores(int64_t layer) const { return source_of_layer_[static_cast<size_t>(layer)] == layer; }
  [[nodiscard]] const std::vector<GroupStorage>& groups() const { return groups_; }

  // What publishing an encoded run of so many tokens gives back, less what it takes.
  [[nodiscard]] int64_t bytes_freed_by_encoding(int64_t tokens) const;
  // Empty lists for the latents of each group under another plan; and those, filled, in the place of the present ones,
  // which the caller gets.
  [[nodiscard]] static std::vector<PageList> latent_lists(const PreparedProfile& profile, size_t plan);
  void set_plan(size_t plan, std::vector<PageList>& lists);

  // Every list of pages, with the number of tokens in it.
  void for_each_list(absl::FunctionRef<void(PageList& pages, int64_t token_count)> visit);
  void for_each_list(absl::FunctionRef<void(const PageList& pages, int64_t token_count)> visit) const;
  [[nodiscard]] Ledger ledger() const;
  // The part of the ledger's total that other sequences hold too.
  [[nodiscard]] int64_t shared_bytes(const Allocator& allocator) const;

 private:
  [[nodiscard]] Status grow(Allocator& allocator, const StorageChange& change);
  [[nodiscard]] Status own_exact(Allocator& allocator, ExactSet& set, const StorageChange& change);
  [[nodiscard]] Status own_latent(Allocator& allocator, LatentSet& set, const StorageChange& change);
  [[nodiscard]] Status own_blocks(Allocator& allocator, GroupStorage& group);
  [[nodiscard]] bool rewrites_tokens(const ExactSet& set, const StorageChange& change) const;
  [[nodiscard]] PageList& pages_of(int64_t plane) { return sets_.planes[static_cast<size_t>(plane)].pages; }
  [[nodiscard]] Status reserve_sequence_blocks(Allocator& allocator);

  SequencePolicy policy_;
  TokenSets sets_;
  std::vector<int32_t> source_of_layer_;
  std::vector<GroupStorage> groups_;
  std::vector<GroupSizes> group_sizes_;
  std::vector<std::pair<Block*, Block>>
      originals_;  // shared blocks that others stand in for, until the change is published
  int64_t run_tokens_ = 1;
  bool own_means_ = false;
  bool has_latents_ = false;
  int64_t token_count_ = 0;
};

}  // namespace foldkv
