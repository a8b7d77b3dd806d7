#include <vector>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/sequence.h"

namespace foldkv {
namespace {

// Pages that are somewhere else.
struct AbsentPage {
  PageList* list = nullptr;
  int64_t page = 0;
};

std::vector<AbsentPage> pages_where(SequenceStorage& storage, absl::FunctionRef<bool(const std::byte* page)> wanted) {
  std::vector<AbsentPage> found;
  storage.for_each_list([&](PageList& list, int64_t) {
    for (int64_t page = 0; page < list.page_count(); ++page) {
      if (wanted(list.pages()[page])) found.push_back({&list, page});
    }
  });
  return found;
}

}  // namespace

Status Sequence::spill() {
  FOLDKV_ASSIGN_OR_RETURN(const std::shared_ptr<SpillStore> store, runtime_->spill_store());
  if (!use_.try_writing()) {
    return with_argument(state_error("the sequence is part of an open step, or in use by another call"), "sequence");
  }
  const absl::Cleanup end = [this] { end_change(); };
  if (spilled()) return absl::OkStatus();
  const PhaseTimer timer(runtime_->times(), Phase::kSave);
  Arena& arena = runtime_->arena();
  const std::vector<AbsentPage> own =
      pages_where(storage_, [&](const std::byte* page) { return !arena.is_shared(page); });
  int64_t bytes = 0;
  for (const AbsentPage& page : own) bytes += page.list->page_bytes();
  auto pieces = std::make_unique<SpilledPieces>(store, bytes);
  std::vector<std::byte> buffer;
  for (const AbsentPage& page : own) {
    buffer.resize(static_cast<size_t>(page.list->page_bytes()));
    FOLDKV_RETURN_IF_ERROR(
        runtime_->backend().copy_to_host(buffer.data(), page.list->pages()[page.page], page.list->page_bytes()));
    FOLDKV_RETURN_IF_ERROR(pieces->write(buffer.data(), page.list->page_bytes()));
  }
  const std::lock_guard<std::mutex> lock(residency_);
  for (const AbsentPage& page : own) {
    arena.release(page.list->role(), page.list->take(page.page), page.list->page_bytes());
  }
  runtime_->count_spilled(1, bytes);
  spilled_pieces_ = std::move(pieces);
  spilled_ = true;
  arena.give_back();
  runtime_->log(LogLevel::kInfo, [&] {
    return absl::StrCat("spilled a sequence of ", storage_.token_count(), " tokens, ", bytes, " bytes");
  });
  return absl::OkStatus();
}

Status Sequence::bring_back() const {
  if (!spilled()) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(residency_);
  if (!spilled()) return absl::OkStatus();  // somebody else was quicker
  const PhaseTimer timer(runtime_->times(), Phase::kRestore);
  // Pages come back as they were: for who reads, nothing changes.
  auto& self = const_cast<Sequence&>(*this);
  FOLDKV_RETURN_IF_ERROR(runtime_->with_room([&] { return self.read_pages(*spilled_pieces_); }));
  runtime_->count_spilled(-1, -spilled_pieces_->bytes());
  spilled_pieces_.reset();
  spilled_ = false;
  runtime_->log(LogLevel::kInfo,
                [&] { return absl::StrCat("brought back a sequence of ", storage_.token_count(), " tokens"); });
  return absl::OkStatus();
}

Status Sequence::read_pages(const SpilledPieces& pieces) {
  Arena& arena = runtime_->arena();
  const std::vector<AbsentPage> absent = pages_where(storage_, [](const std::byte* page) { return page == nullptr; });
  int64_t restored = 0;
  absl::Cleanup undo = [&] {
    for (int64_t index = 0; index < restored; ++index) {
      const AbsentPage& page = absent[static_cast<size_t>(index)];
      arena.release(page.list->role(), page.list->take(page.page), page.list->page_bytes());
    }
  };
  std::vector<std::byte> buffer;
  for (const AbsentPage& page : absent) {
    const int64_t bytes = page.list->page_bytes();
    buffer.resize(static_cast<size_t>(bytes));
    FOLDKV_RETURN_IF_ERROR(pieces.read(restored, buffer.data(), bytes));
    FOLDKV_ASSIGN_OR_RETURN(std::byte * memory, arena.allocate(page.list->role(), bytes));
    page.list->put(page.page, memory);
    ++restored;
    FOLDKV_RETURN_IF_ERROR(runtime_->backend().copy_to_device(memory, buffer.data(), bytes));
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

}  // namespace foldkv
