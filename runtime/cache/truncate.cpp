#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/exact_rows.h"
#include "runtime/cache/kept_tokens.h"
#include "runtime/cache/sequence.h"
#include "runtime/cache/token_pages.h"

namespace foldkv {
namespace {

// Tokens of a list, whose positions rise, that lie before a position.
StatusOr<int64_t> tokens_before(backend::Backend& backend, const PageList& tokens, int64_t count, int64_t position) {
  int64_t first = 0;
  while (first < count) {
    const int64_t middle = first + (count - first) / 2;
    int32_t found = 0;
    FOLDKV_RETURN_IF_ERROR(read_positions(backend, tokens, middle, 1, &found));
    if (found < position) {
      first = middle + 1;
    } else {
      count = middle;
    }
  }
  return first;
}

// Finds what is left of a sequence. A codec whose tokens share scales holds whole runs only: what is left of a cut run
// becomes exact again.
class Truncation {
 public:
  Truncation(Sequence& sequence, int64_t position)
      : sequence_(sequence),
        storage_(sequence.storage()),
        backend_(sequence.runtime().backend()),
        position_(position) {}

  // Room is reserved when it fails, or for what it returns.
  StatusOr<StorageChange> prepare() {
    FOLDKV_RETURN_IF_ERROR(count());
    if (change_.new_tokens > 0) FOLDKV_RETURN_IF_ERROR(restore_run());
    return std::move(change_);
  }

 private:
  Status count() {
    bool latents_left = false;
    for (const LatentSet& set : storage_.latent_sets()) {
      FOLDKV_ASSIGN_OR_RETURN(const int64_t left, tokens_before(backend_, set.tokens, set.token_count, position_));
      change_.new_tokens = left % storage_.run_tokens();
      change_.latent_counts.push_back(left - change_.new_tokens);
      latents_left = latents_left || change_.latent_counts.back() > 0;
    }
    for (const ExactSet& set : storage_.exact_sets()) {
      FOLDKV_ASSIGN_OR_RETURN(const int64_t left, tokens_before(backend_, set.tokens, set.token_count, position_));
      change_.exact_counts.push_back(left + (set.grouped ? change_.new_tokens : 0));
    }
    change_.restores = change_.new_tokens > 0;
    change_.forgotten_tokens = lost_tokens() + change_.new_tokens;
    change_.forgets_runs = !latents_left && sequence_.lowest_truncation() == 0;
    return absl::OkStatus();
  }

  // Every set loses as many tokens as the first.
  int64_t lost_tokens() const {
    int64_t lost = storage_.exact_sets().front().token_count - change_.exact_counts.front();
    for (size_t index = 0; index < storage_.latent_sets().size(); ++index) {
      const LatentSet& set = storage_.latent_sets()[index];
      if (set.exact_set == 0) return lost + set.token_count - change_.latent_counts[index];
    }
    return lost;
  }

  // Rows and positions of the cut run, first behind the exact tokens, where they overwrite nothing.
  Status restore_run() {
    FOLDKV_RETURN_IF_ERROR(sequence_.storage().reserve(sequence_.runtime().arena(), change_));
    for (const LatentSet& set : storage_.latent_sets()) {
      const ExactSet& exact = storage_.exact_sets()[static_cast<size_t>(set.exact_set)];
      std::vector<int32_t> positions(static_cast<size_t>(change_.new_tokens));
      FOLDKV_RETURN_IF_ERROR(
          read_positions(backend_, set.tokens, latents_left(), change_.new_tokens, positions.data()));
      FOLDKV_RETURN_IF_ERROR(
          write_positions(backend_, exact.tokens, exact.token_count, change_.new_tokens, positions.data()));
    }
    for (int64_t layer = 0; layer < storage_.layer_count(); ++layer) {
      if (!storage_.stores(layer) || !storage_.set_of(layer).grouped) continue;
      for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
        FOLDKV_RETURN_IF_ERROR(restore_rows(layer, side));
      }
    }
    return gather();
  }

  Status restore_rows(int64_t layer, backend::Side side) {
    const int64_t width = sequence_.model().layer(layer).key_width();
    std::vector<float> numbers(static_cast<size_t>(change_.new_tokens * width));
    const MutableTensorView rows{reinterpret_cast<std::byte*>(numbers.data()), NumberFormat::kF32, change_.new_tokens,
                                 width, width};
    FOLDKV_RETURN_IF_ERROR(
        sequence_.rebuild_held({layer, side, false, storage_.sink_slots() + latents_left(), change_.new_tokens}, rows));
    return write_rows(sequence_, layer, side, storage_.set_of(layer).token_count, rows);
  }

  Status gather() {
    KeptTokens kept;
    for (const ExactSet& set : storage_.exact_sets()) {
      kept.exact.push_back({!set.grouped, {}});
      if (!set.grouped) continue;
      std::vector<int32_t>& slots = kept.exact.back().slots;
      slots.resize(static_cast<size_t>(storage_.sink_slots() + change_.new_tokens));
      std::iota(slots.begin(), slots.begin() + storage_.sink_slots(), 0);
      std::iota(slots.begin() + storage_.sink_slots(), slots.end(), static_cast<int32_t>(set.token_count));
    }
    kept.exact_scores.resize(kept.exact.size());
    std::vector<int32_t> buffer(keep_buffer(storage_, kept, change_));
    return gather_kept(sequence_, kept, change_, buffer);
  }

  // Codecs with runs let nobody evict: all groups hold the same.
  int64_t latents_left() const { return change_.latent_counts.front(); }

  Sequence& sequence_;
  const SequenceStorage& storage_;
  backend::Backend& backend_;
  int64_t position_;
  StorageChange change_;
};

Status check_position(int64_t position, const SequenceLife& life) {
  if (position < 0 || position > life.next_position) {
    return argument_error("position", absl::StrCat("is ", position, ", expected 0 to ", life.next_position,
                                                   ", the next position of the sequence"));
  }
  if (position >= life.evicted_before) return absl::OkStatus();
  return with_argument(
      state_error(absl::StrCat("is ", position, ", but tokens were evicted when the next position was ",
                               life.evicted_before, "; the sequence cannot be cut below that")),
      "position");
}

}  // namespace

Status Sequence::truncate(int64_t position) {
  FOLDKV_RETURN_IF_ERROR(begin_change());
  const absl::Cleanup end = [this] {
    storage_.rollback(runtime_->arena());
    runtime_->arena().give_back();
    end_change();
  };
  FOLDKV_RETURN_IF_ERROR(check_position(position, life_));
  if (position == life_.next_position) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(const StorageChange change, Truncation(*this, position).prepare());
  const int64_t lost = change.forgotten_tokens - change.new_tokens;
  storage_.publish(runtime_->arena(), change);
  life_.next_position = position;
  // At the end of a prompt an eviction policy looks at exact tokens.
  const bool reopens = policy_.eviction == nullptr || storage_.latent_tokens() == 0;
  life_.prompt_open = life_.prompt_open || (position < life_.prompt_end && reopens) || position == 0;
  if (change.forgets_runs) life_.energies = {};
  window_.rows = std::max<int64_t>(0, window_.rows - lost);
  if (window_.rows == 0) window_ = {};
  if (storage_.token_count() == 0) moments_ = {};
  return absl::OkStatus();
}

}  // namespace foldkv
