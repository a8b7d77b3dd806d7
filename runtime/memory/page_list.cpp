#include "runtime/memory/page_list.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace foldkv {

Status PageList::grow(Allocator& allocator, int64_t tokens) {
  const int64_t needed = divide_up(tokens, page_tokens_);
  const int64_t before = page_count();
  absl::Cleanup undo = [&] { shrink(allocator, before * page_tokens_); };
  while (page_count() < needed) {
    // The place first: when the host is out of memory, no page is lost.
    pages_.push_back(nullptr);
    ++absent_;
    FOLDKV_ASSIGN_OR_RETURN(std::byte * page, allocator.allocate(role_, page_bytes_));
    put(page_count() - 1, page);
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

void PageList::shrink(Allocator& allocator, int64_t tokens) {
  const int64_t kept = divide_up(tokens, page_tokens_);
  while (page_count() > kept) {
    if (pages_.back() == nullptr) {
      --absent_;
    } else {
      allocator.release(role_, pages_.back(), page_bytes_);
    }
    pages_.pop_back();
  }
}

std::byte* PageList::take(int64_t page) {
  ++absent_;
  return std::exchange(pages_[static_cast<size_t>(page)], nullptr);
}

void PageList::put(int64_t page, std::byte* memory) {
  --absent_;
  pages_[static_cast<size_t>(page)] = memory;
}

void PageList::share(Allocator& allocator, const PageList& other) {
  pages_.reserve(other.pages_.size());
  for (std::byte* page : other.pages_) {
    allocator.share(page);
    pages_.push_back(page);
  }
}

Status PageList::make_own(Allocator& allocator, int64_t first, int64_t end) {
  if (first >= end) return absl::OkStatus();
  for (int64_t page = first / page_tokens_; page < divide_up(end, page_tokens_); ++page) {
    const auto index = static_cast<size_t>(page);
    if (!allocator.is_shared(pages_[index])) continue;
    originals_.push_back({index, pages_[index]});  // the place first, as above
    absl::Cleanup undo = [this] { originals_.pop_back(); };
    FOLDKV_RETURN_IF_ERROR(copy_page(allocator, pages_[index]));
    std::move(undo).Cancel();
  }
  return absl::OkStatus();
}

Status PageList::copy_page(Allocator& allocator, std::byte*& page) const {
  FOLDKV_ASSIGN_OR_RETURN(std::byte * copy, allocator.allocate(role_, page_bytes_));
  absl::Cleanup undo = [&] { allocator.release(role_, copy, page_bytes_); };
  FOLDKV_RETURN_IF_ERROR(allocator.copy(copy, page, page_bytes_));
  std::move(undo).Cancel();
  page = copy;
  return absl::OkStatus();
}

void PageList::revert(Allocator& allocator) {
  for (const Original& original : originals_) {
    allocator.release(role_, pages_[original.index], page_bytes_);
    pages_[original.index] = original.page;
  }
  originals_.clear();
}

void PageList::settle(Allocator& allocator) {
  for (const Original& original : originals_) allocator.release(role_, original.page, page_bytes_);
  originals_.clear();
}

int64_t PageList::shared_bytes(const Allocator& allocator) const {
  const auto shared = std::count_if(pages_.begin(), pages_.end(), [&](const std::byte* page) {
    return page != nullptr && allocator.is_shared(page);
  });
  return shared * block_bytes(page_bytes_);
}

}  // namespace foldkv
