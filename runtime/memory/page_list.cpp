#include "runtime/memory/page_list.h"

#include <algorithm>
#include <utility>

namespace foldkv {

Status PageList::grow(Allocator& allocator, int64_t tokens) {
  const int64_t needed = divide_up(tokens, page_tokens_);
  const int64_t before = page_count();
  while (page_count() < needed) {
    // The place first: when the host is out of memory, no page is lost.
    pages_.push_back(nullptr);
    ++absent_;
    StatusOr<std::byte*> page = allocator.allocate(role_, page_bytes_);
    if (!page.ok()) {
      shrink(allocator, before * page_tokens_);
      return page.status();
    }
    put(page_count() - 1, *page);
  }
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
    const Status copied = copy_page(allocator, pages_[index]);
    if (!copied.ok()) {
      originals_.pop_back();
      return copied;
    }
  }
  return absl::OkStatus();
}

Status PageList::copy_page(Allocator& allocator, std::byte*& page) const {
  FOLDKV_ASSIGN_OR_RETURN(std::byte * copy, allocator.allocate(role_, page_bytes_));
  const Status copied = allocator.copy(copy, page, page_bytes_);
  if (copied.ok()) {
    page = copy;
  } else {
    allocator.release(role_, copy, page_bytes_);
  }
  return copied;
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
