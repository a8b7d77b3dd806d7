#pragma once

#include <cstdint>
#include <vector>

#include "runtime/memory/allocator.h"

namespace foldkv {

// The pages of one plane of a sequence: token slot s lies in page s / page_tokens. Owns nothing by itself: whoever
// holds a PageList gives the pages back with shrink(allocator, 0).
class PageList {
 public:
  PageList(Role role, int64_t page_tokens, int64_t page_bytes)
      : role_(role), page_tokens_(page_tokens), page_bytes_(page_bytes) {}

  // Room for tokens slots, or a budget error and nothing has changed.
  [[nodiscard]] Status grow(Allocator& allocator, int64_t tokens);
  // Gives back the pages beyond those that tokens slots need.
  void shrink(Allocator& allocator, int64_t tokens);

  [[nodiscard]] std::byte* const* pages() const { return pages_.data(); }
  [[nodiscard]] int64_t page_tokens() const { return page_tokens_; }
  [[nodiscard]] int64_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] int64_t page_count() const { return static_cast<int64_t>(pages_.size()); }
  [[nodiscard]] int64_t bytes() const { return page_count() * block_bytes(page_bytes_); }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] std::byte* page_of(int64_t slot) const { return pages_[static_cast<size_t>(slot / page_tokens_)]; }

 private:
  Role role_;
  int64_t page_tokens_;
  int64_t page_bytes_;
  std::vector<std::byte*> pages_;
};

}  // namespace foldkv
