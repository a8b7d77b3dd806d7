#include "runtime/memory/page_list.h"

namespace foldkv {

Status PageList::grow(Allocator& allocator, int64_t tokens) {
  const int64_t needed = divide_up(tokens, page_tokens_);
  const int64_t before = page_count();
  while (page_count() < needed) {
    // The place first: when the host is out of memory, no page is lost.
    pages_.push_back(nullptr);
    StatusOr<std::byte*> page = allocator.allocate(role_, page_bytes_);
    if (!page.ok()) {
      pages_.pop_back();
      shrink(allocator, before * page_tokens_);
      return page.status();
    }
    pages_.back() = *page;
  }
  return absl::OkStatus();
}

void PageList::shrink(Allocator& allocator, int64_t tokens) {
  const int64_t kept = divide_up(tokens, page_tokens_);
  while (page_count() > kept) {
    allocator.release(role_, pages_.back(), page_bytes_);
    pages_.pop_back();
  }
}

}  // namespace foldkv
