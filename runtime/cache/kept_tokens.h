#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/cache/sequence.h"

namespace foldkv {

// Slots of a set that stay, rising.
struct KeptSlots {
  bool all = true;
  std::vector<int32_t> slots;  // when not all
};

// What becomes of the tokens of a sequence when a change is published.
struct KeptTokens {
  std::vector<KeptSlots> exact;                  // of each exact set, among those held and new
  std::vector<std::vector<int32_t>> encoded;     // of each latent set: slots of its exact set that become latents
  std::vector<KeptSlots> latent;                 // of each latent set, among those held
  // Of the tokens that the sets then hold; empty where a set keeps no scores, or they do not change.
  std::vector<std::vector<float>> exact_scores;
  std::vector<std::vector<float>> latent_scores;
  std::vector<TokenBudget> budgets;  // of each exact set; empty: as they are
  bool reindexed = false;        // positions become 0, 1, 2, …: the sets hold equally many tokens
};

// Nothing is evicted: the run of a change becomes latents.
[[nodiscard]] KeptTokens keep_all(const SequenceStorage& storage, const StorageChange& change);

// The counts of the change that publishing these tokens takes.
void count_kept(const SequenceStorage& storage, const KeptTokens& kept, StorageChange& change);

// Tokens that each set over which a policy decides holds after the change, where all hold equally many.
[[nodiscard]] int64_t held_after(const SequenceStorage& storage, const StorageChange& change);

// Brings the kept tokens together: rows of planes and latents, positions, scores. The latents of the encoded run stand
// behind those held. The sequence must publish the change, which has been counted, next. A failure loses the sequence:
// tokens that were moved cannot be told from those that were not. buffer: room for keep_buffer() numbers, so that this
// step of a commit allocates nothing.
[[nodiscard]] Status gather_kept(Sequence& sequence, const KeptTokens& kept, const StorageChange& change,
                                 std::span<int32_t> buffer);
[[nodiscard]] size_t keep_buffer(const SequenceStorage& storage, const KeptTokens& kept, const StorageChange& change);

}  // namespace foldkv
