#pragma once

#include <cstdint>
#include <vector>

#include "backends/interface/layout.h"
#include "runtime/cache/prepared.h"
#include "runtime/cache/sequence_policy.h"
#include "runtime/memory/page_list.h"

namespace foldkv {

// Small pages: a sequence with few exact tokens would otherwise pay for empty slots in every layer.
inline constexpr int64_t kExactPageTokens = 16;

// Layers that hold the same tokens in their exact regions.
//
//   slots   | sinks | recent and generated tokens |      rising positions, no holes
struct ExactSet {
  std::vector<int32_t> layers;
  bool grouped = false;  // the layers belong to groups: tokens between sinks and recent ones move to latents
  int64_t token_count = 0;
  PageList positions{Role::kPositions, kExactPageTokens, kExactPageTokens * 4};
};

struct GroupStorage {
  PageList pages;
  Block key_mean, value_mean;  // f16; absent while the sequence has no mean of its own
  Block correction_basis;      // f16
  BasisPair keys, values;      // absent while the sequence has no bases of its own

  [[nodiscard]] const BasisPair& bases(backend::Side side) const {
    return side == backend::Side::kKeys ? keys : values;
  }
};

// Numbers of what a sequence holds once for a group.
struct GroupSizes {
  int64_t width = 0;  // stacked
  int64_t correction = 0;
  int64_t key_basis = 0;  // 0: no bases of its own
  int64_t value_basis = 0;
  bool has_projections = false;
};

// What one step or one call to compress adds and moves.
struct StorageChange {
  int64_t new_tokens = 0;
  int64_t encoded_tokens = 0;  // of the grouped set, from the first slot after the sinks
};

// The pages of one sequence. reserve / publish / rollback are a transaction; the same code runs on an arena and on a
// counting allocator, which is how estimates are made. Owns its pages through the allocator given to every call;
// release must be called before destruction.
class SequenceStorage {
 public:
  SequenceStorage(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy);

  // Room for the change, or a budget error and nothing has changed.
  [[nodiscard]] Status reserve(Allocator& allocator, const StorageChange& change);
  // Room for what source holds, and its counts; the caller copies the contents. Budget error and nothing has changed.
  // This storage is empty, and both were made of equal arguments.
  [[nodiscard]] Status reserve_copy(Allocator& allocator, const SequenceStorage& source);
  // Drops what reserve added.
  void rollback(Allocator& allocator);
  // Makes the change count. The caller has moved the rows (see first_kept_slot) and written the latents.
  void publish(Allocator& allocator, const StorageChange& change);
  void release(Allocator& allocator);

  [[nodiscard]] int64_t token_count() const { return token_count_; }
  [[nodiscard]] int64_t latent_tokens() const { return latent_tokens_; }
  // Exact tokens in layers that belong to a group; 0 without groups.
  [[nodiscard]] int64_t grouped_exact_tokens() const;
  [[nodiscard]] bool has_groups() const { return !groups_.empty(); }
  // Encoded runs are multiples of so many tokens.
  [[nodiscard]] int64_t run_tokens() const { return run_tokens_; }
  // Slot at which encoded runs begin.
  [[nodiscard]] int64_t sink_slots() const { return policy_.sink_tokens; }

  [[nodiscard]] const std::vector<ExactSet>& sets() const { return sets_; }
  [[nodiscard]] const ExactSet& set_of(int64_t layer) const {
    return sets_[static_cast<size_t>(set_of_layer_[static_cast<size_t>(layer)])];
  }
  [[nodiscard]] const backend::ExactLayout& exact_layout(int64_t layer) const {
    return exact_layouts_[static_cast<size_t>(layer)];
  }
  // Those of the layer that it reads.
  [[nodiscard]] const PageList& exact_pages(int64_t layer) const {
    return exact_pages_[static_cast<size_t>(source_of_layer_[static_cast<size_t>(layer)])];
  }
  // False for a layer that reads another one.
  [[nodiscard]] bool stores(int64_t layer) const { return source_of_layer_[static_cast<size_t>(layer)] == layer; }
  [[nodiscard]] const PageList& latent_positions() const { return latent_positions_; }
  [[nodiscard]] const std::vector<GroupStorage>& groups() const { return groups_; }

  [[nodiscard]] Ledger ledger() const;

 private:
  [[nodiscard]] Status reserve_exact(Allocator& allocator, int64_t new_tokens);
  [[nodiscard]] Status reserve_latent(Allocator& allocator, int64_t encoded_tokens);
  [[nodiscard]] Status reserve_sequence_blocks(Allocator& allocator);

  SequencePolicy policy_;
  std::vector<backend::ExactLayout> exact_layouts_;
  std::vector<PageList> exact_pages_;  // one for each layer
  std::vector<ExactSet> sets_;
  std::vector<int32_t> set_of_layer_;
  std::vector<int32_t> source_of_layer_;
  std::vector<GroupStorage> groups_;
  std::vector<GroupSizes> group_sizes_;
  int64_t run_tokens_ = 1;
  bool own_means_ = false;
  PageList latent_positions_;
  int64_t token_count_ = 0;
  int64_t latent_tokens_ = 0;
};

}  // namespace foldkv
