#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cache/query_moments.h"
#include "runtime/cache/query_window.h"
#include "runtime/cache/runtime.h"
#include "runtime/cache/sequence_policy.h"
#include "runtime/cache/sequence_storage.h"
#include "runtime/cache/sequence_use.h"
#include "runtime/cache/spilled_pieces.h"
#include "runtime/calibration/calibrator.h"
#include "runtime/calibration/expected_energy.h"

namespace foldkv {

class AttentionRecord;

struct RebuildQuestion {
  int64_t layer = 0;
  backend::Side side = backend::Side::kKeys;
  bool rotated = false;
  int64_t first_token = 0;  // among those that are held
  int64_t token_count = 0;
  std::optional<int64_t> head = std::nullopt;  // nullopt: all KV heads, which must hold the same tokens
};

struct ReplaceQuestion {
  int64_t layer = 0;
  backend::Side side = backend::Side::kKeys;
  int64_t first_token = 0;
};

struct PerturbQuestion {
  int64_t layer = 0;
  backend::Side side = backend::Side::kValues;
  double scale = 0.0;  // 0 or more, finite
  uint64_t seed = 0;
  uint32_t example = 0;
  int64_t first_token = 0;
  int64_t token_count = 0;
};

// What a sequence knows of its past besides what it holds.
struct SequenceLife {
  int64_t next_position = 0;
  bool prompt_open = true;
  int64_t prompt_end = 0;      // next position when the prompt was closed
  int64_t evicted_before = 0;  // next position when tokens were evicted last: it has lost some before this one
  Energies energies{};         // of the tokens encoded
};

// Bytes that each way to free memory would bring.
struct Reclaimable {
  int64_t release = 0;
  int64_t spill = 0;
  int64_t compress = 0;   // without evictions
  int64_t plan = 0;       // set_plan to the plan with the fewest bytes
  int64_t plan_room = 0;  // that must be free to do so
  size_t smallest_plan = 0;
};

// The cache of one sequence. Tokens are counted in the order of their positions:
//
//   grouped layers    | sinks (exact) | latents | recent and generated (exact) |
//   other layers      | exact                                                  |
//
// An eviction policy may leave each layer, head or layer group other tokens than the rest (token_sets.h).
//
// Const functions may run concurrently; a sequence that is part of an open step belongs to the step.
class Sequence {
 public:
  // Mismatch error when the profile is not for this model, unsupported error when a kernel is missing,
  // budget error when the prepared data does not fit.
  [[nodiscard]] static StatusOr<std::shared_ptr<Sequence>> create(std::shared_ptr<Runtime> runtime,
                                                                  const std::shared_ptr<Model>& model,
                                                                  const std::shared_ptr<const Profile>& profile,
                                                                  const SequencePolicy& policy);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  // Encodes all that the policy allows. State error while a step is open.
  [[nodiscard]] Status compress();
  // Keys or values of one layer as attention sees them; output [tokens][key width], or [tokens][head size] of one head,
  // any format, host memory. State error when all heads are asked for and hold different tokens.
  [[nodiscard]] Status rebuild(const RebuildQuestion& question, const MutableTensorView& output) const;
  // An independent sequence that holds the same, in the same pages until one of the two writes to them: takes no memory
  // of the arena. State error while a step is open. What observes this sequence does not observe the other.
  [[nodiscard]] StatusOr<std::shared_ptr<Sequence>> fork() const;
  // Forgets the tokens at this position and beyond; it is the next one then. State error where tokens before it have
  // been evicted since. Budget error when a cut run of a codec whose tokens share scales does not fit as exact tokens.
  [[nodiscard]] Status truncate(int64_t position);
  // Re-encodes the latents under another plan of the profile. Budget error when the new pages do not fit beside the old
  // ones, unsupported error for codecs without plans.
  [[nodiscard]] Status set_plan(size_t plan);
  // Pages that nobody else holds go to a file of the runtime's spill directory; the next call that needs them brings
  // them back. State error without a directory, file error when it cannot be written; nothing has changed then.
  [[nodiscard]] Status spill();
  [[nodiscard]] bool spilled() const { return spilled_.load(); }
  [[nodiscard]] Reclaimable reclaimable() const;
  // Lines of text for reports of faults, without a number of any key or value.
  [[nodiscard]] StatusOr<std::string> describe() const;
  // Puts rows [tokens][key width] (keys after their norm, before rotation, or values) in the place of exact tokens'.
  // State error where a token is a latent, numeric error where a number does not fit the cache's format.
  [[nodiscard]] Status replace(const ReplaceQuestion& question, const TensorView& rows);
  // Adds scale * |x| * noise to every head's vector x of exact tokens (perturbation_noise.h). Errors as above.
  [[nodiscard]] Status perturb(const PerturbQuestion& question);
  // Observed at every commit from now on; null detaches.
  [[nodiscard]] Status attach(std::shared_ptr<Calibrator> calibrator);

  // Of the tokens that a KV head of a layer holds, rising.
  [[nodiscard]] StatusOr<std::vector<int32_t>> positions(int64_t layer, int64_t head) const;
  // Of the tokens that any layer holds, rising.
  [[nodiscard]] StatusOr<std::vector<int32_t>> positions() const;
  // Whether all KV heads of a layer hold the same tokens, as they do until heads evict on their own.
  [[nodiscard]] bool heads_agree(int64_t layer) const;
  [[nodiscard]] int64_t held_tokens(int64_t layer, int64_t head) const;
  // 0 for a layer in no group.
  [[nodiscard]] int64_t latent_tokens_of(int64_t layer) const;
  [[nodiscard]] int64_t next_position() const { return life_.next_position; }
  // The lowest position that it can be truncated to.
  [[nodiscard]] int64_t lowest_truncation() const { return life_.evicted_before; }
  [[nodiscard]] const Model& model() const { return *model_->data.model; }
  [[nodiscard]] const std::shared_ptr<const SharedModel>& shared_model() const { return model_; }
  [[nodiscard]] const std::shared_ptr<const SharedProfile>& shared_profile() const { return profile_; }
  [[nodiscard]] const SequencePolicy& policy() const { return policy_; }
  [[nodiscard]] const SequenceStorage& storage() const { return storage_; }
  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  // Every byte that the sequence holds.
  [[nodiscard]] Ledger ledger() const;
  // The part of them that other sequences hold too.
  [[nodiscard]] int64_t shared_bytes() const;
  // Of the tokens encoded so far, and what tokens of the calibration text would have on average; zeros: not known.
  [[nodiscard]] const Energies& energies() const { return life_.energies; }
  [[nodiscard]] Energies expected_energies() const;

  // Keeps others from changing the sequence while it is read. Who has opened a step on it may read it too.
  class Reader {
   public:
    explicit Reader(const Sequence& sequence) : sequence_(sequence), shared_(sequence.use_.try_reading()) {}
    ~Reader() {
      if (shared_) sequence_.use_.end_reading();
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    [[nodiscard]] Status status() const;
    // For a call that needs the sequence between steps.
    [[nodiscard]] Status between_steps() const;

   private:
    const Sequence& sequence_;
    bool shared_;
  };

  // --- for who has begun to read or change the sequence
  [[nodiscard]] Status rebuild_held(const RebuildQuestion& question, const MutableTensorView& output) const;
  [[nodiscard]] StatusOr<std::vector<int32_t>> held_positions(int64_t layer, int64_t head) const;

  // --- for steps
  // One step (or call) at a time owns the sequence: state error while somebody else does, or reads it.
  [[nodiscard]] Status begin_change();
  void end_change() { use_.end_writing(); }
  // The backend has failed while pages in use were changed: what they hold is not known. Nobody may read or change the
  // sequence any more.
  void lose() { lost_ = true; }
  // State error when it is lost.
  [[nodiscard]] Status check_held() const;
  [[nodiscard]] SequenceStorage& storage() { return storage_; }
  [[nodiscard]] bool prompt_open() const { return life_.prompt_open; }
  [[nodiscard]] const std::shared_ptr<Calibrator>& calibrator() const { return calibrator_; }
  // The last queries of a prompt that goes on, for the eviction policy.
  [[nodiscard]] const QueryWindow& window() const { return window_; }
  // Of the prompt's queries so far, likewise; kept in generation when the policy evicts there.
  [[nodiscard]] const QueryMoments& moments() const { return moments_; }
  [[nodiscard]] const SequenceLife& life() const { return life_; }
  // For who restores a sequence.
  void set_past(const SequenceLife& life, QueryWindow window, QueryMoments moments) {
    life_ = life;
    window_ = std::move(window);
    moments_ = std::move(moments);
  }
  // What the policy needs of an attention record that the sequence has lived through.
  void keep_record(AttentionRecord& record, bool prompt_continues);
  // energies: of the encoded run.
  void publish(const StorageChange& change, const Energies& energies, int64_t next_position, bool prompt_ends);

  // --- views for the backend. Counts of tokens may reach beyond what is published.
  // The tokens of a plane and its layer's latents; rows are the caller's to fill in.
  [[nodiscard]] backend::AttendSequence attend_view(const ExactPlane& plane, int64_t layer, int64_t new_tokens) const;
  [[nodiscard]] backend::LatentRegion latent_region(int64_t group, int64_t token_count) const;
  // Of the profile or, where it leaves them to the sequence, its own; empty when latents are rows.
  [[nodiscard]] const BasisPair& bases(int64_t group, backend::Side side) const;
  // With layout null for a layer in no group.
  [[nodiscard]] backend::LatentLayer latent_layer(int64_t layer) const;

 private:
  Sequence(std::shared_ptr<Runtime> runtime, std::shared_ptr<const SharedModel> model,
           std::shared_ptr<const SharedProfile> profile, const SequencePolicy& policy);
  [[nodiscard]] Status compress_now(StorageChange change);
  void warn_of_losses() const;
  [[nodiscard]] Status bring_back() const;
  [[nodiscard]] Status read_pages(const SpilledPieces& pieces);

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<const SharedModel> model_;
  std::shared_ptr<const SharedProfile> profile_;
  SequencePolicy policy_;
  SequenceStorage storage_;
  std::shared_ptr<Calibrator> calibrator_;
  QueryWindow window_;
  QueryMoments moments_;
  SequenceLife life_;
  mutable SequenceUse use_;
  // What is spilled comes back when somebody reads it: pages change then, their contents do not.
  mutable std::mutex residency_;  // of the lists of pages while nobody changes the sequence
  mutable std::unique_ptr<SpilledPieces> spilled_pieces_;
  mutable std::atomic<bool> spilled_{false};
  std::atomic<bool> lost_{false};
};

}  // namespace foldkv
