#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/interface/layout.h"
#include "runtime/base/checked.h"
#include "tests/support/memory_block.h"

namespace foldkv::test {

// Pages of plain memory, each an allocation of its own, with the array of pointers that regions ask for.
class PagePool {
 public:
  PagePool(int64_t tokens, int64_t page_tokens, int64_t page_bytes, std::byte fill) : page_tokens_(page_tokens) {
    for (int64_t i = 0; i < divide_up(tokens, page_tokens); ++i) blocks_.emplace_back(page_bytes, fill);
    collect();
  }
  PagePool(const PagePool& other) : page_tokens_(other.page_tokens_), blocks_(other.blocks_) { collect(); }
  PagePool(PagePool&&) noexcept = default;
  PagePool& operator=(const PagePool&) = delete;

  [[nodiscard]] std::byte* const* pages() const { return pages_.data(); }
  [[nodiscard]] std::byte* page_of(int64_t slot) const { return pages_[static_cast<size_t>(slot / page_tokens_)]; }
  [[nodiscard]] int64_t row_of(int64_t slot) const { return slot % page_tokens_; }
  [[nodiscard]] bool canaries_alive() const {
    return std::all_of(blocks_.begin(), blocks_.end(), [](const MemoryBlock& block) { return block.canary_alive(); });
  }
  void fill(std::byte value) const {
    for (const MemoryBlock& block : blocks_) std::fill_n(block.data(), block.bytes(), value);
  }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    for (const MemoryBlock& block : blocks_) all.insert(all.end(), block.data(), block.data() + block.bytes());
    return all;
  }

 private:
  void collect() {
    for (const MemoryBlock& block : blocks_) pages_.push_back(block.data());
  }

  int64_t page_tokens_;
  std::vector<MemoryBlock> blocks_;
  std::vector<std::byte*> pages_;
};

// Positions of a region's tokens, in pages.
class PositionPages {
 public:
  PositionPages(std::span<const int32_t> positions, int64_t page_tokens, std::byte fill)
      : page_tokens_(page_tokens),
        pool_(static_cast<int64_t>(positions.size()), page_tokens, page_tokens * int64_t{sizeof(int32_t)}, fill) {
    for (int64_t slot = 0; slot < static_cast<int64_t>(positions.size()); ++slot) {
      reinterpret_cast<int32_t*>(pool_.page_of(slot))[pool_.row_of(slot)] = positions[static_cast<size_t>(slot)];
    }
  }
  [[nodiscard]] backend::PositionRegion region() const { return {pool_.pages(), page_tokens_}; }

 private:
  int64_t page_tokens_;
  PagePool pool_;
};

}  // namespace foldkv::test
