#include "runtime/cache/snapshot/restore_sequences.h"

#include <limits>
#include <span>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/base/fingerprint.h"
#include "runtime/cache/record_plan.h"
#include "runtime/cache/snapshot/check_saved.h"
#include "runtime/cache/snapshot/page_compression.h"
#include "runtime/cache/snapshot/policy_record.h"
#include "runtime/cache/snapshot/snapshot_file.h"
#include "runtime/cache/snapshot/snapshot_index.h"
#include "runtime/profile/read_numbers.h"

namespace foldkv {
namespace {

Status wrong(absl::string_view what) { return corrupt_error(absl::StrCat("the snapshot's ", what, " cannot be")); }

Status check_identity(const file::Snapshot& root, const Model& model, const Profile* profile) {
  if (root.version() != snapshot_file::kVersion) return wrong("version");
  if (root.exact_page_tokens() != kExactPageTokens || root.latent_page_tokens() != kLatentPageTokens) {
    return version_error("the snapshot's pages have another size than this library's");
  }
  const std::string name = read_text(root.model_name());
  if (root.model_fingerprint() != model.fingerprint() || root.layer_count() != model.layer_count()) {
    return with_argument(mismatch_error(absl::StrCat("the snapshot was made for another model: its geometry has the "
                                                     "fingerprint ",
                                                     absl::Hex(root.model_fingerprint()), ", this model's ",
                                                     absl::Hex(model.fingerprint()))),
                         "model");
  }
  if (!name.empty() && !model.name().empty() && name != model.name()) {
    return with_argument(
        mismatch_error(absl::StrCat("the snapshot was made for \"", name, "\", this model is \"", model.name(), "\"")),
        "model");
  }
  const uint64_t bases = profile == nullptr ? 0 : bases_fingerprint(*profile);
  if (root.profile_fingerprint() == bases) return absl::OkStatus();
  if (profile == nullptr)
    return with_argument(mismatch_error("the snapshot was made with a profile, got none"), "profile");
  if (root.profile_fingerprint() == 0) {
    return with_argument(mismatch_error("the snapshot was made without a profile"), "profile");
  }
  return with_argument(
      mismatch_error(absl::StrCat("the snapshot was made with a profile whose bases have the fingerprint ",
                                  absl::Hex(root.profile_fingerprint()), ", this one's have ", absl::Hex(bases))),
      "profile");
}

StatusOr<size_t> find_saved_plan(const file::SavedPolicy& saved, const Profile* profile, const std::string& wanted) {
  const std::string name = read_text(saved.plan());
  if (!wanted.empty() && wanted != name) {
    return with_argument(
        mismatch_error(absl::StrCat("the snapshot was made under the plan \"", name, "\", expected \"", wanted, "\"")),
        "options.plan");
  }
  if (profile == nullptr) return 0;
  for (size_t plan = 0; plan < profile->plans.size(); ++plan) {
    if (profile->plans[plan].name == name && plan_fingerprint(profile->plans[plan]) == saved.plan_fingerprint()) {
      return plan;
    }
  }
  return with_argument(mismatch_error(absl::StrCat("has no plan \"", name, "\" with the bits of the snapshot's")),
                       "profile");
}

// Memory of the snapshot's pages, held by the sequences that use them.
class RestoredPages {
 public:
  RestoredPages(Arena& arena, const file::Snapshot& root)
      : arena_(arena), root_(root), pages_(root.page_bytes()->size()) {}

  Status fill_list(PageList& list, int64_t token_count, const file::SavedList& saved) {
    if (saved.pages()->size() != divide_up(token_count, list.page_tokens())) return wrong("number of pages");
    list.reserve(saved.pages()->size());
    for (const uint32_t number : *saved.pages()) {
      FOLDKV_ASSIGN_OR_RETURN(Page * page, find(number, list.role(), list.page_bytes()));
      if (page->memory == nullptr) {
        FOLDKV_ASSIGN_OR_RETURN(page->memory, arena_.allocate(list.role(), list.page_bytes()));
      } else if (page->block == nullptr) {
        arena_.share(page->memory);
      } else {
        return wrong("pages");
      }
      list.push(page->memory);
    }
    return absl::OkStatus();
  }

  Status fill_block(Block& block, Role role, int64_t bytes, uint32_t number) {
    FOLDKV_ASSIGN_OR_RETURN(Page * page, find(number, role, bytes));
    if (page->block != nullptr) {
      block = page->block->share();
      return absl::OkStatus();
    }
    if (page->memory != nullptr) return wrong("pages");
    FOLDKV_ASSIGN_OR_RETURN(block, Block::allocate(arena_, role, bytes));
    page->block = &block;
    page->memory = block.data();
    return absl::OkStatus();
  }

  Status read(backend::Backend& backend, const Cancellation& cancellation, ReadBytes read) {
    Fingerprint checksum;
    const auto take = [&](std::span<std::byte> bytes) -> Status {
      FOLDKV_RETURN_IF_ERROR(read(bytes));
      checksum.add_bytes(bytes.data(), bytes.size());
      return absl::OkStatus();
    };
    for (size_t number = 0; number < pages_.size(); ++number) {
      FOLDKV_RETURN_IF_ERROR(cancellation.check());
      FOLDKV_RETURN_IF_ERROR(read_page(backend, number, take));
    }
    std::array<std::byte, 8> trailer{};
    FOLDKV_RETURN_IF_ERROR(read(trailer));
    if (snapshot_file::load(trailer.data(), trailer.size()) == checksum.value()) return absl::OkStatus();
    return corrupt_error("the snapshot is not whole or has been changed: the checksum of its pages does not fit");
  }

 private:
  struct Page {
    std::byte* memory = nullptr;
    const Block* block = nullptr;
    Role role = Role::kExact;
  };

  StatusOr<Page*> find(uint32_t number, Role role, int64_t bytes) {
    if (number >= pages_.size() || root_.page_bytes()->Get(number) != bytes) return wrong("pages");
    Page& page = pages_[number];
    if (page.memory != nullptr && page.role != role) return wrong("pages");
    page.role = role;
    return &page;
  }

  Status read_page(backend::Backend& backend, size_t number, ReadBytes take) {
    const auto place = static_cast<flatbuffers::uoffset_t>(number);
    const size_t bytes = root_.page_bytes()->Get(place);
    if (pages_[number].memory == nullptr) return wrong("pages");  // nobody's
    std::array<std::byte, 4> size{};
    FOLDKV_RETURN_IF_ERROR(take(size));
    const uint64_t stored = snapshot_file::load(size.data(), size.size());
    if (stored == 0 || stored > bytes) {
      return corrupt_error("the snapshot is not whole or has been changed: a page has the wrong length");
    }
    page_.resize(bytes);
    if (stored == bytes) {
      FOLDKV_RETURN_IF_ERROR(take(page_));
    } else {
      stored_.resize(stored);
      FOLDKV_RETURN_IF_ERROR(take(stored_));
      FOLDKV_RETURN_IF_ERROR(decompress_page(stored_, page_));
    }
    if (fingerprint_of_bytes(page_.data(), bytes) != root_.page_checksums()->Get(place)) {
      return corrupt_error(absl::StrCat("the snapshot is not whole or has been changed: the checksum of page ", number,
                                        " does not fit"));
    }
    return backend.copy_to_device(pages_[number].memory, page_.data(), static_cast<int64_t>(bytes));
  }

  Arena& arena_;
  const file::Snapshot& root_;
  std::vector<Page> pages_;
  std::vector<std::byte> page_, stored_;
};

Status fill_blocks(RestoredPages& pages, SequenceStorage& storage, const file::SavedSequence& saved) {
  const auto expected = static_cast<flatbuffers::uoffset_t>(storage.groups().size() * 7);
  if (saved.blocks()->size() != expected) return wrong("blocks");
  flatbuffers::uoffset_t next = 0;
  for (size_t group = 0; group < storage.groups().size(); ++group) {
    const std::array<int64_t, 7> sizes = storage.block_sizes(group);
    const auto blocks = storage.groups()[group].blocks();
    for (size_t block = 0; block < blocks.size(); ++block) {
      const uint32_t number = saved.blocks()->Get(next++);
      if ((number != 0) != (storage.has_latents() && sizes[block] > 0)) return wrong("blocks");
      if (number == 0) continue;
      FOLDKV_RETURN_IF_ERROR(pages.fill_block(*blocks[block], block_role(block), sizes[block], number - 1));
    }
  }
  return absl::OkStatus();
}

// Rows of f32 that a policy remembers: `numbers` of them in a row of the room, or in all.
Status fill_rows(RestoredPages& pages, const file::SavedRows& saved, int64_t numbers, Block& memory) {
  const auto bytes = checked_multiply({numbers, int64_t{sizeof(float)}});
  if (!bytes.has_value() || *bytes == 0) return wrong("remembered attention");
  return pages.fill_block(memory, Role::kPositions, *bytes, saved.page());
}

Status fill_window(RestoredPages& pages, const Sequence& sequence, const file::SavedRows& saved, QueryWindow& window) {
  window.room = saved.room();
  window.rows = saved.rows();
  if (sequence.policy().eviction == nullptr || window.room < 1 || window.rows < 0 || window.rows > window.room) {
    return wrong("window");
  }
  const auto numbers = checked_multiply({window.room, window_row_numbers(sequence.model(), sequence.policy())});
  if (!numbers.has_value()) return wrong("window");
  return fill_rows(pages, saved, *numbers, window.memory);
}

Status fill_moments(RestoredPages& pages, const Sequence& sequence, const file::SavedRows& saved,
                    QueryMoments& moments) {
  moments.rows = saved.rows();
  if (sequence.policy().eviction == nullptr || moments.rows < 0 || moments.rows > std::numeric_limits<int32_t>::max() ||
      sequence.policy().eviction->policy.scoring.scorer != Scorer::kExpectedAttention) {
    return wrong("moments");
  }
  return fill_rows(pages, saved, all_moment_numbers(sequence.model(), sequence.policy()), moments.memory);
}

// One sequence with all memory that it needs, nothing of which is filled yet. memories: of the window and the moments,
// where they stay until the pages are read, since others may share them.
Status fill_sequence(RestoredPages& pages, Sequence& sequence, const file::SavedSequence& saved, QueryWindow& window,
                     QueryMoments& moments) {
  SequenceStorage& storage = sequence.storage();
  FOLDKV_ASSIGN_OR_RETURN(const StorageCounts counts, read_counts(saved, sequence));
  storage.set_counts(counts);
  flatbuffers::uoffset_t next = 0;
  Status status;
  storage.for_each_list([&](PageList& list, int64_t token_count) {
    if (!status.ok()) return;
    status =
        next < saved.lists()->size() ? pages.fill_list(list, token_count, *saved.lists()->Get(next)) : wrong("lists");
    ++next;
  });
  FOLDKV_RETURN_IF_ERROR(status);
  if (next != saved.lists()->size()) return wrong("lists");
  FOLDKV_RETURN_IF_ERROR(fill_blocks(pages, storage, saved));
  if (saved.window() != nullptr) FOLDKV_RETURN_IF_ERROR(fill_window(pages, sequence, *saved.window(), window));
  if (saved.moments() != nullptr) FOLDKV_RETURN_IF_ERROR(fill_moments(pages, sequence, *saved.moments(), moments));
  return absl::OkStatus();
}

struct Restored {
  std::shared_ptr<Sequence> sequence;
  QueryWindow window;
  QueryMoments moments;
};

// Made for a snapshot whose index has been verified; a failure leaves nothing behind.
class Restoration {
 public:
  Restoration(const std::shared_ptr<Runtime>& runtime, const std::shared_ptr<Model>& model,
              const std::shared_ptr<const Profile>& profile, const RestoreOptions& options, const file::Snapshot& root)
      : runtime_(runtime),
        model_(model),
        profile_(profile),
        options_(options),
        root_(root),
        pages_(runtime->arena(), root) {}

  Status create_sequences() {
    restored_.resize(root_.sequences()->size());
    for (flatbuffers::uoffset_t index = 0; index < root_.sequences()->size(); ++index) {
      const file::SavedSequence& saved = *root_.sequences()->Get(index);
      FOLDKV_ASSIGN_OR_RETURN(SequencePolicy policy, read_policy(*saved.policy(), *model_));
      FOLDKV_ASSIGN_OR_RETURN(policy.plan, find_saved_plan(*saved.policy(), profile_.get(), options_.plan));
      Restored& restored = restored_[index];
      FOLDKV_ASSIGN_OR_RETURN(restored.sequence, Sequence::create(runtime_, model_, profile_, policy));
      FOLDKV_RETURN_IF_ERROR(fill_sequence(pages_, *restored.sequence, saved, restored.window, restored.moments));
    }
    return absl::OkStatus();
  }

  Status read_pages(ReadBytes read) { return pages_.read(runtime_->backend(), options_.cancellation, read); }

  StatusOr<std::vector<std::shared_ptr<Sequence>>> finish() {
    std::vector<std::shared_ptr<Sequence>> sequences;
    for (flatbuffers::uoffset_t index = 0; index < root_.sequences()->size(); ++index) {
      Restored& restored = restored_[index];
      FOLDKV_ASSIGN_OR_RETURN(const SequenceLife life, read_life(*root_.sequences()->Get(index)));
      restored.sequence->set_past(life, std::move(restored.window), std::move(restored.moments));
      FOLDKV_RETURN_IF_ERROR(check_tokens(*restored.sequence));
      sequences.push_back(std::move(restored.sequence));
    }
    return sequences;
  }

 private:
  const std::shared_ptr<Runtime>& runtime_;
  const std::shared_ptr<Model>& model_;
  const std::shared_ptr<const Profile>& profile_;
  const RestoreOptions& options_;
  const file::Snapshot& root_;
  RestoredPages pages_;
  std::vector<Restored> restored_;
};

}  // namespace

StatusOr<std::vector<std::shared_ptr<Sequence>>> restore_sequences(const std::shared_ptr<Runtime>& runtime,
                                                                   const std::shared_ptr<Model>& model,
                                                                   const std::shared_ptr<const Profile>& profile,
                                                                   const RestoreOptions& options, ReadBytes read) {
  const PhaseTimer timer(runtime->times(), Phase::kRestore);
  FOLDKV_RETURN_IF_ERROR(options.cancellation.check());
  FOLDKV_ASSIGN_OR_RETURN(const SnapshotIndex index, SnapshotIndex::read(read));
  const file::Snapshot& root = index.root();
  FOLDKV_RETURN_IF_ERROR(check_identity(root, *model, profile.get()));
  if (root.sequences()->size() > options.capacity) {
    return argument_error("capacity", absl::StrCat("is ", options.capacity, ", the snapshot holds ",
                                                   root.sequences()->size(), " sequences"));
  }
  if (root.sequences()->size() == 0 || root.page_checksums()->size() != root.page_bytes()->size())
    return wrong("index");
  std::optional<Restoration> restoration;
  FOLDKV_RETURN_IF_ERROR(runtime->with_room([&] {
    restoration.emplace(runtime, model, profile, options, root);
    const Status status = restoration->create_sequences();
    if (!status.ok()) restoration.reset();
    return status;
  }));
  FOLDKV_RETURN_IF_ERROR(restoration->read_pages(read));
  return restoration->finish();
}

}  // namespace foldkv
