#include "runtime/cache/snapshot/check_saved.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/cache/token_pages.h"
#include "runtime/profile/read_numbers.h"

namespace foldkv {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

Status wrong(absl::string_view what) { return corrupt_error(absl::StrCat("the snapshot's ", what, " cannot be")); }

bool in_range(const std::vector<int64_t>& numbers, int64_t most) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t number) { return number >= 0 && number <= most; });
}

// Tokens of the layers of an exact set: its own and the latents beside them.
Status check_set(const SequenceStorage& storage, const StorageCounts& counts, size_t index, int64_t latents) {
  const ExactSet& set = storage.exact_sets()[index];
  const int64_t tokens = counts.exact[index] + latents;
  if (set.evicts ? tokens > counts.token_count : tokens != counts.token_count) return wrong("numbers of tokens");
  if (latents > 0 && counts.exact[index] < storage.sink_slots()) return wrong("numbers of exact tokens");
  return absl::OkStatus();
}

Status check_latents(const SequenceStorage& storage, const StorageCounts& counts) {
  for (size_t index = 0; index < counts.latent.size(); ++index) {
    const int64_t latents = counts.latent[index];
    if (latents % storage.run_tokens() != 0 || (latents > 0 && !counts.has_latents)) return wrong("numbers of latents");
    FOLDKV_RETURN_IF_ERROR(
        check_set(storage, counts, static_cast<size_t>(storage.latent_sets()[index].exact_set), latents));
  }
  for (size_t index = 0; index < counts.exact.size(); ++index) {
    if (!storage.exact_sets()[index].grouped) FOLDKV_RETURN_IF_ERROR(check_set(storage, counts, index, 0));
  }
  return counts.has_latents && !storage.has_groups() ? wrong("latents") : absl::OkStatus();
}

// Sets whose positions are numbered anew hold equally many tokens, now and later.
Status check_reindexing(const Sequence& sequence, const StorageCounts& counts) {
  const SequencePolicy& policy = sequence.policy();
  if (policy.eviction == nullptr || !policy.eviction->policy.selection.reindexed) return absl::OkStatus();
  const SequenceStorage& storage = sequence.storage();
  int64_t tokens = -1;
  for (size_t index = 0; index < counts.exact.size(); ++index) {
    const ExactSet& set = storage.exact_sets()[index];
    const int64_t latents = set.grouped ? counts.latent[static_cast<size_t>(storage.latent_index_of(set.group))] : 0;
    const int64_t held = counts.exact[index] + latents;
    if (tokens >= 0 && held != tokens) return wrong("numbers of tokens");
    tokens = held;
    if (counts.budgets[index].tokens != counts.budgets[0].tokens) return wrong("budgets");
  }
  return absl::OkStatus();
}

Status check_scores(const Sequence& sequence, const PageList& pages, int64_t count) {
  if (token_sections(pages).size() < 2) return absl::OkStatus();
  std::vector<float> scores(static_cast<size_t>(count));
  FOLDKV_RETURN_IF_ERROR(read_scores(sequence.runtime().backend(), pages, 0, count, scores.data()));
  const bool finite = std::all_of(scores.begin(), scores.end(), [](float score) { return std::isfinite(score); });
  return finite ? absl::OkStatus() : wrong("scores");
}

// Nothing is evicted, and under an eviction policy nothing encoded, before a prompt has ended.
Status check_open_prompt(const Sequence& sequence) {
  if (!sequence.prompt_open() || sequence.policy().eviction == nullptr) return absl::OkStatus();
  const SequenceStorage& storage = sequence.storage();
  const bool whole = std::ranges::all_of(storage.exact_sets(), [&](const ExactSet& set) {
    return set.token_count == storage.token_count();
  });
  return whole && storage.latent_tokens() == 0 ? absl::OkStatus() : wrong("open prompt");
}

}  // namespace

StatusOr<StorageCounts> read_counts(const file::SavedSequence& saved, const Sequence& sequence) {
  const SequenceStorage& storage = sequence.storage();
  StorageCounts counts;
  counts.token_count = saved.token_count();
  counts.has_latents = saved.has_latents();
  if (counts.token_count < 0 || counts.token_count > kMostTokens) return wrong("number of tokens");
  if (saved.exact_counts()->size() != storage.exact_sets().size() ||
      saved.budget_tokens()->size() != storage.exact_sets().size() ||
      saved.budget_recent()->size() != storage.exact_sets().size() ||
      saved.latent_counts()->size() != storage.latent_sets().size()) {
    return wrong("number of sets of tokens");
  }
  counts.exact = read_numbers(*saved.exact_counts());
  counts.latent = read_numbers(*saved.latent_counts());
  if (!in_range(counts.exact, kMostTokens) || !in_range(counts.latent, kMostTokens)) return wrong("numbers of tokens");
  for (flatbuffers::uoffset_t set = 0; set < saved.budget_tokens()->size(); ++set) {
    const TokenBudget budget{saved.budget_tokens()->Get(set), saved.budget_recent()->Get(set)};
    if (budget.recent < 0 || budget.recent > budget.tokens || budget.tokens > kMostTokens) return wrong("budgets");
    counts.budgets.push_back(budget);
  }
  FOLDKV_RETURN_IF_ERROR(check_latents(storage, counts));
  FOLDKV_RETURN_IF_ERROR(check_reindexing(sequence, counts));
  return counts;
}

StatusOr<SequenceLife> read_life(const file::SavedSequence& saved) {
  SequenceLife life;
  life.next_position = saved.next_position();
  life.prompt_open = saved.prompt_open();
  life.prompt_end = saved.prompt_end();
  life.evicted_before = saved.evicted_before();
  if (life.next_position < 0 || life.next_position > kMostTokens + 1) return wrong("next position");
  for (const int64_t position : {life.prompt_end, life.evicted_before}) {
    if (position < 0 || position > kMostTokens + 1) return wrong("life");
  }
  if (life.evicted_before > life.next_position) return wrong("life");
  const std::vector<double> energies = read_numbers(*saved.energies());
  if (energies.size() != 2 * life.energies.size()) return wrong("energies");
  for (const double energy : energies) {
    if (!std::isfinite(energy) || energy < 0.0) return wrong("energies");
  }
  for (size_t side = 0; side < life.energies.size(); ++side) {
    life.energies[side] = {energies[2 * side], energies[2 * side + 1]};
  }
  return life;
}

Status check_tokens(const Sequence& sequence) {
  FOLDKV_RETURN_IF_ERROR(check_open_prompt(sequence));
  for (const ExactSet& set : sequence.storage().exact_sets()) {
    const ExactPlane& plane = sequence.storage().planes()[static_cast<size_t>(set.planes.front())];
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> positions,
                            sequence.held_positions(plane.layer, plane.first_head));
    int64_t lowest = 0;
    for (const int32_t position : positions) {
      if (position < lowest || position >= sequence.next_position()) return wrong("positions");
      lowest = int64_t{position} + 1;
    }
    FOLDKV_RETURN_IF_ERROR(check_scores(sequence, set.tokens, set.token_count));
  }
  for (const LatentSet& set : sequence.storage().latent_sets()) {
    FOLDKV_RETURN_IF_ERROR(check_scores(sequence, set.tokens, set.token_count));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
