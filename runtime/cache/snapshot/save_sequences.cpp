#include "runtime/cache/snapshot/save_sequences.h"

#include <deque>
#include <limits>
#include <vector>

#include "runtime/base/fingerprint.h"
#include "runtime/cache/snapshot/page_compression.h"
#include "runtime/cache/snapshot/policy_record.h"
#include "runtime/cache/snapshot/saved_pages.h"
#include "runtime/cache/snapshot/snapshot_file.h"

namespace foldkv {
namespace {

using snapshot_file::store;

class Snapshot {
 public:
  Snapshot(std::span<const std::shared_ptr<Sequence>> sequences, const SaveOptions& options)
      : sequences_(sequences), options_(options), backend_(sequences.front()->runtime().backend()) {}

  Status save(WriteBytes write) {
    FOLDKV_RETURN_IF_ERROR(options_.cancellation.check());
    FOLDKV_ASSIGN_OR_RETURN(compressor_, PageCompressor::create(options_.compression));
    record_identity();
    for (const auto& sequence : sequences_) index_.sequences.push_back(record(*sequence));
    FOLDKV_RETURN_IF_ERROR(record_pages());
    FOLDKV_RETURN_IF_ERROR(write_index(write));
    return write_pages(write);
  }

 private:
  void record_identity() {
    const Sequence& first = *sequences_.front();
    const Model& model = first.model();
    index_.version = snapshot_file::kVersion;
    index_.made_by = options_.made_by;
    index_.model_fingerprint = model.fingerprint();
    index_.model_name = model.name();
    index_.layer_count = static_cast<int32_t>(model.layer_count());
    index_.exact_page_tokens = kExactPageTokens;
    index_.latent_page_tokens = kLatentPageTokens;
    const Profile* const profile = first.shared_profile()->data.profile.get();
    if (profile != nullptr) index_.profile_fingerprint = bases_fingerprint(*profile);
    const auto* const note = reinterpret_cast<const uint8_t*>(options_.note.data());
    index_.note.assign(note, note + options_.note.size());
  }

  std::unique_ptr<file::SavedSequenceT> record(const Sequence& sequence) {
    auto saved = std::make_unique<file::SavedSequenceT>();
    saved->policy = std::make_unique<file::SavedPolicyT>(record_policy(sequence.policy()));
    if (const auto& profile = sequence.shared_profile()->data.profile; profile != nullptr) {
      const Plan& plan = profile->plans[sequence.policy().plan];
      saved->policy->plan = plan.name;
      saved->policy->plan_fingerprint = plan_fingerprint(plan);
    }
    record_counts(sequence.storage().counts(), *saved);
    record_life(sequence.life(), *saved);
    for (std::vector<uint32_t>& pages : pages_.add_lists(sequence)) {
      saved->lists.push_back(std::make_unique<file::SavedListT>());
      saved->lists.back()->pages = std::move(pages);
    }
    for (const GroupStorage& group : sequence.storage().groups()) {
      for (const Block* block : group.blocks()) saved->blocks.push_back(*block ? 1 + pages_.add_block(*block) : 0);
    }
    const QueryWindow& window = sequence.window();
    saved->window = record_rows(window.memory, window.room, window.rows);
    saved->moments = record_rows(sequence.moments().memory, 0, sequence.moments().rows);
    return saved;
  }

  static void record_counts(const StorageCounts& counts, file::SavedSequenceT& saved) {
    saved.token_count = counts.token_count;
    saved.has_latents = counts.has_latents;
    saved.exact_counts = counts.exact;
    for (const TokenBudget& budget : counts.budgets) {
      saved.budget_tokens.push_back(budget.tokens);
      saved.budget_recent.push_back(budget.recent);
    }
    saved.latent_counts = counts.latent;
  }

  static void record_life(const SequenceLife& life, file::SavedSequenceT& saved) {
    saved.next_position = life.next_position;
    saved.prompt_open = life.prompt_open;
    saved.prompt_end = life.prompt_end;
    saved.evicted_before = life.evicted_before;
    for (const SideEnergy& energy : life.energies) {
      saved.energies.push_back(energy.total);
      saved.energies.push_back(energy.lost);
    }
  }

  std::unique_ptr<file::SavedRowsT> record_rows(const Block& memory, int64_t room, int64_t rows) {
    if (!memory) return nullptr;
    auto saved = std::make_unique<file::SavedRowsT>();
    saved->page = pages_.add_block(memory);
    saved->room = room;
    saved->rows = rows;
    return saved;
  }

  Status record_pages() {
    for (size_t page = 0; page < pages_.size(); ++page) {
      FOLDKV_RETURN_IF_ERROR(options_.cancellation.check());
      FOLDKV_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, pages_.read(backend_, page));
      if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
        return unsupported_error(absl::StrCat("a block of ", bytes.size(), " bytes is too large for a snapshot"));
      }
      index_.page_bytes.push_back(static_cast<uint32_t>(bytes.size()));
      index_.page_checksums.push_back(fingerprint_of_bytes(bytes.data(), bytes.size()));
    }
    return absl::OkStatus();
  }

  Status write_index(WriteBytes write) {
    flatbuffers::FlatBufferBuilder builder;
    file::FinishSnapshotBuffer(builder, file::Snapshot::Pack(builder, &index_));
    const std::span index(reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize());
    if (index.size() > snapshot_file::kMostIndexBytes) {
      return unsupported_error(absl::StrCat("an index of ", index.size(), " bytes is too large for a snapshot"));
    }
    std::array<std::byte, snapshot_file::kHeaderBytes> header{};
    std::copy_n(reinterpret_cast<const std::byte*>(snapshot_file::kMagic.data()), snapshot_file::kMagic.size(),
                header.begin());
    store(snapshot_file::kVersion, 4, header.data() + 8);
    store(index.size(), 8, header.data() + 16);
    store(fingerprint_of_bytes(index.data(), index.size()), 8, header.data() + snapshot_file::kIndexChecksumOffset);
    store(fingerprint_of_bytes(header.data(), snapshot_file::kChecksummedHeaderBytes), 8,
          header.data() + snapshot_file::kChecksummedHeaderBytes);
    FOLDKV_RETURN_IF_ERROR(write(header));
    return write(index);
  }

  Status write_pages(WriteBytes write) {
    Fingerprint checksum;
    const auto put = [&](std::span<const std::byte> bytes) {
      checksum.add_bytes(bytes.data(), bytes.size());
      return write(bytes);
    };
    for (size_t page = 0; page < pages_.size(); ++page) {
      FOLDKV_RETURN_IF_ERROR(options_.cancellation.check());
      FOLDKV_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, pages_.read(backend_, page));
      const std::span<const std::byte> stored = compressor_->compress(bytes);
      std::array<std::byte, 4> size{};
      store(stored.size(), size.size(), size.data());
      FOLDKV_RETURN_IF_ERROR(put(size));
      FOLDKV_RETURN_IF_ERROR(put(stored));
    }
    std::array<std::byte, 8> trailer{};
    store(checksum.value(), trailer.size(), trailer.data());
    return write(trailer);
  }

  std::span<const std::shared_ptr<Sequence>> sequences_;
  const SaveOptions& options_;
  backend::Backend& backend_;
  std::unique_ptr<PageCompressor> compressor_;
  SavedPages pages_;
  file::SnapshotT index_;
};

}  // namespace

Status save_sequences(std::span<const std::shared_ptr<Sequence>> sequences, const SaveOptions& options,
                      WriteBytes write) {
  if (sequences.empty()) return argument_error("sequence_count", "is 0, expected 1 or more");
  const Sequence& first = *sequences.front();
  std::deque<Sequence::Reader> readers;
  for (size_t index = 0; index < sequences.size(); ++index) {
    const Sequence& sequence = *sequences[index];
    const std::string name = absl::StrCat("sequences[", index, "]");
    if (sequence.shared_model() != first.shared_model() || sequence.shared_profile() != first.shared_profile()) {
      return with_argument(mismatch_error("is not of the runtime, model and profile of sequences[0]"), name);
    }
    const Status status = readers.emplace_back(sequence).between_steps();
    if (!status.ok()) return with_argument(status, name);
  }
  const PhaseTimer timer(first.runtime().times(), Phase::kSave);
  return Snapshot(sequences, options).save(write);
}

}  // namespace foldkv
