#pragma once

#include <cstdint>
#include <vector>

#include "runtime/memory/allocator.h"

namespace foldkv {

// The pages of one plane of a sequence: token slot s lies in page s / page_tokens. Owns nothing by itself: whoever
// holds a PageList gives the pages back with shrink(allocator, 0).
//
// Lists of several sequences may hold the same pages, which are then read only. Before slots are written make_own gives
// their pages copies; until settle the originals are held too, so that revert can bring them back.
class PageList {
 public:
  PageList(Role role, int64_t page_tokens, int64_t page_bytes)
      : role_(role), page_tokens_(page_tokens), page_bytes_(page_bytes) {}

  // Room for tokens slots, or a budget error and nothing has changed.
  [[nodiscard]] Status grow(Allocator& allocator, int64_t tokens);
  // Gives back the pages beyond those that tokens slots need. Nothing is to be reverted.
  void shrink(Allocator& allocator, int64_t tokens);
  // Holds the pages of another list of equal layout as well. This one is empty.
  void share(Allocator& allocator, const PageList& other);

  // Pages one by one, for who saves and restores them. reserve makes room on the host, so that push cannot fail: it
  // takes over a page. A page that was taken out is null until it is put back.
  void reserve(int64_t pages) { pages_.reserve(static_cast<size_t>(pages)); }
  void push(std::byte* page) { pages_.push_back(page); }
  [[nodiscard]] std::byte* take(int64_t page);
  void put(int64_t page, std::byte* memory);

  // Slots [first, end), which have pages, may be written from now on. Budget error when copies do not fit: revert then.
  [[nodiscard]] Status make_own(Allocator& allocator, int64_t first, int64_t end);
  // Back to the pages before make_own.
  void revert(Allocator& allocator);
  // Lets go of the pages before make_own.
  void settle(Allocator& allocator);

  [[nodiscard]] std::byte* const* pages() const { return pages_.data(); }
  [[nodiscard]] int64_t page_tokens() const { return page_tokens_; }
  [[nodiscard]] int64_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] int64_t page_count() const { return static_cast<int64_t>(pages_.size()); }
  // Of the pages that are there.
  [[nodiscard]] int64_t bytes() const { return (page_count() - absent_) * block_bytes(page_bytes_); }
  // The part of bytes() that other lists hold too.
  [[nodiscard]] int64_t shared_bytes(const Allocator& allocator) const;
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] std::byte* page_of(int64_t slot) const { return pages_[static_cast<size_t>(slot / page_tokens_)]; }

 private:
  struct Original {
    size_t index = 0;
    std::byte* page = nullptr;
  };

  // Another block with the page's contents takes its place.
  [[nodiscard]] Status copy_page(Allocator& allocator, std::byte*& page) const;

  Role role_;
  int64_t page_tokens_;
  int64_t page_bytes_;
  std::vector<std::byte*> pages_;
  int64_t absent_ = 0;               // of them, those taken out
  std::vector<Original> originals_;  // that copies stand in for
};

}  // namespace foldkv
