#include "runtime/cache/kept_tokens.h"

#include <algorithm>
#include <numeric>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/token_pages.h"

namespace foldkv {
namespace {

// Slots at the beginning of a rising list that stay where they are.
int64_t unmoved(std::span<const int32_t> slots) {
  int64_t count = 0;
  while (count < std::ssize(slots) && slots[static_cast<size_t>(count)] == count) ++count;
  return count;
}

// Moves the positions at `slots` to slots from `to` on. buffer has room for one number for each.
Status move_positions(backend::Backend& backend, const PageList& pages, std::span<const int32_t> slots, int64_t to,
                      std::span<int32_t> buffer) {
  for (size_t first = 0; first < slots.size();) {
    size_t end = first + 1;
    while (end < slots.size() && slots[end] == slots[end - 1] + 1) ++end;
    FOLDKV_RETURN_IF_ERROR(
        read_positions(backend, pages, slots[first], static_cast<int64_t>(end - first), buffer.data() + first));
    first = end;
  }
  return write_positions(backend, pages, to, std::ssize(slots), buffer.data());
}

Status gather_exact(Sequence& sequence, const ExactSet& set, std::span<const int32_t> kept, std::span<int32_t> buffer) {
  backend::Backend& backend = sequence.runtime().backend();
  const int64_t to = unmoved(kept);
  const std::span<const int32_t> slots = kept.subspan(static_cast<size_t>(to));
  if (slots.empty()) return absl::OkStatus();
  for (int32_t index : set.planes) {
    const ExactPlane& plane = sequence.storage().planes()[static_cast<size_t>(index)];
    backend::MoveRequest request;
    request.layout = plane.layout;
    request.region = {plane.pages.pages(), int64_t{slots.back()} + 1};
    request.to = to;
    request.count = std::ssize(slots);
    request.slots = slots.data();
    FOLDKV_RETURN_IF_ERROR(backend.move_rows(request));
  }
  return move_positions(backend, set.tokens, slots, to, buffer);
}

// Kept latents, and behind them those of the encoded run.
Status gather_latents(Sequence& sequence, const LatentSet& set, std::span<const int32_t> kept, size_t encoded,
                      std::span<int32_t> buffer) {
  std::span<int32_t> slots = buffer.first(kept.size() + encoded);
  std::copy(kept.begin(), kept.end(), slots.begin());
  std::iota(slots.begin() + std::ssize(kept), slots.end(), static_cast<int32_t>(set.token_count));
  const std::span<int32_t> positions = buffer.subspan(slots.size());
  const int64_t to = unmoved(slots);
  slots = slots.subspan(static_cast<size_t>(to));
  if (slots.empty()) return absl::OkStatus();
  backend::Backend& backend = sequence.runtime().backend();
  for (int32_t group : set.groups) {
    const auto index = static_cast<size_t>(group);
    backend::MoveLatentsRequest request;
    request.layout = &sequence.shared_profile()->data.groups[index].layouts[sequence.policy().plan];
    request.pages = sequence.storage().groups()[index].pages.pages();
    request.to = to;
    request.count = std::ssize(slots);
    request.slots = slots.data();
    FOLDKV_RETURN_IF_ERROR(backend.move_latents(request));
  }
  return move_positions(backend, set.tokens, slots, to, positions);
}

Status store_scores(backend::Backend& backend, const PageList& tokens, const std::vector<float>& scores) {
  return scores.empty() ? absl::OkStatus() : write_scores(backend, tokens, 0, std::ssize(scores), scores.data());
}

// Positions 0, 1, 2, … in the order of the tokens: sinks, latents, the rest.
Status number_positions(const Sequence& sequence, const StorageChange& change, std::span<int32_t> buffer) {
  const SequenceStorage& storage = sequence.storage();
  backend::Backend& backend = sequence.runtime().backend();
  const auto numbers = buffer.first(static_cast<size_t>(held_after(storage, change)));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t index = 0; index < storage.exact_sets().size(); ++index) {
    const ExactSet& set = storage.exact_sets()[index];
    const int64_t exact = change.exact_counts[index];
    if (!set.grouped) {
      FOLDKV_RETURN_IF_ERROR(write_positions(backend, set.tokens, 0, exact, numbers.data()));
      continue;
    }
    const int64_t sinks = std::min(exact, storage.sink_slots());
    const int64_t latents = change.latent_counts[static_cast<size_t>(storage.latent_index_of(set.group))];
    FOLDKV_RETURN_IF_ERROR(write_positions(backend, set.tokens, 0, sinks, numbers.data()));
    FOLDKV_RETURN_IF_ERROR(
        write_positions(backend, storage.latent_set_of(set.group).tokens, 0, latents, numbers.data() + sinks));
    FOLDKV_RETURN_IF_ERROR(
        write_positions(backend, set.tokens, sinks, exact - sinks, numbers.data() + sinks + latents));
  }
  return absl::OkStatus();
}

}  // namespace

KeptTokens keep_all(const SequenceStorage& storage, const StorageChange& change) {
  KeptTokens kept;
  kept.exact.resize(storage.exact_sets().size());
  kept.latent.resize(storage.latent_sets().size());
  kept.encoded.resize(storage.latent_sets().size());
  kept.exact_scores.resize(storage.exact_sets().size());
  kept.latent_scores.resize(storage.latent_sets().size());
  if (change.encoded_tokens == 0) return kept;
  const int64_t sinks = storage.sink_slots();
  for (size_t index = 0; index < kept.exact.size(); ++index) {
    const ExactSet& set = storage.exact_sets()[index];
    if (!set.grouped) continue;
    kept.exact[index].all = false;
    std::vector<int32_t>& slots = kept.exact[index].slots;
    slots.resize(static_cast<size_t>(set.token_count + change.new_tokens - change.encoded_tokens));
    std::iota(slots.begin(), slots.begin() + sinks, 0);
    std::iota(slots.begin() + sinks, slots.end(), static_cast<int32_t>(sinks + change.encoded_tokens));
  }
  for (std::vector<int32_t>& slots : kept.encoded) {
    slots.resize(static_cast<size_t>(change.encoded_tokens));
    std::iota(slots.begin(), slots.end(), static_cast<int32_t>(sinks));
  }
  return kept;
}

void count_kept(const SequenceStorage& storage, const KeptTokens& kept, StorageChange& change) {
  change.budgets = kept.budgets;
  change.exact_counts.clear();
  change.latent_counts.clear();
  change.evicts = false;
  for (size_t index = 0; index < kept.exact.size(); ++index) {
    const ExactSet& set = storage.exact_sets()[index];
    const int64_t all = set.token_count + change.new_tokens;
    change.exact_counts.push_back(kept.exact[index].all ? all : std::ssize(kept.exact[index].slots));
    change.evicts |= change.exact_counts.back() < all - (set.grouped ? change.encoded_tokens : 0);
  }
  for (size_t index = 0; index < kept.latent.size(); ++index) {
    const int64_t all = storage.latent_sets()[index].token_count;
    const int64_t held = kept.latent[index].all ? all : std::ssize(kept.latent[index].slots);
    change.latent_counts.push_back(held + std::ssize(kept.encoded[index]));
    change.evicts |= change.latent_counts.back() < all + change.encoded_tokens;
  }
}

int64_t held_after(const SequenceStorage& storage, const StorageChange& change) {
  for (size_t index = 0; index < storage.exact_sets().size(); ++index) {
    const ExactSet& set = storage.exact_sets()[index];
    if (!set.evicts) continue;
    const int64_t latents =
        set.grouped ? change.latent_counts[static_cast<size_t>(storage.latent_index_of(set.group))] : 0;
    return change.exact_counts[index] + latents;
  }
  return storage.token_count() + change.new_tokens;
}

size_t keep_buffer(const SequenceStorage& storage, const KeptTokens& kept, const StorageChange& change) {
  size_t numbers = kept.reindexed ? static_cast<size_t>(held_after(storage, change)) : 0;
  for (const KeptSlots& set : kept.exact) numbers = std::max(numbers, set.slots.size());
  for (size_t index = 0; index < kept.latent.size(); ++index) {
    numbers = std::max(numbers, 2 * (kept.latent[index].slots.size() + kept.encoded[index].size()));
  }
  return numbers;
}

Status gather_kept(Sequence& sequence, const KeptTokens& kept, const StorageChange& change, std::span<int32_t> buffer) {
  const SequenceStorage& storage = sequence.storage();
  backend::Backend& backend = sequence.runtime().backend();
  absl::Cleanup lost = [&sequence] { sequence.lose(); };
  for (size_t index = 0; index < kept.exact.size(); ++index) {
    const ExactSet& set = storage.exact_sets()[index];
    if (!kept.exact[index].all) FOLDKV_RETURN_IF_ERROR(gather_exact(sequence, set, kept.exact[index].slots, buffer));
    FOLDKV_RETURN_IF_ERROR(store_scores(backend, set.tokens, kept.exact_scores[index]));
  }
  for (size_t index = 0; index < kept.latent.size(); ++index) {
    const LatentSet& set = storage.latent_sets()[index];
    if (!kept.latent[index].all) {
      FOLDKV_RETURN_IF_ERROR(
          gather_latents(sequence, set, kept.latent[index].slots, kept.encoded[index].size(), buffer));
    }
    FOLDKV_RETURN_IF_ERROR(store_scores(backend, set.tokens, kept.latent_scores[index]));
  }
  if (kept.reindexed) FOLDKV_RETURN_IF_ERROR(number_positions(sequence, change, buffer));
  std::move(lost).Cancel();
  return absl::OkStatus();
}

}  // namespace foldkv
