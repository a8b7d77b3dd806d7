#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/cache/sequence.h"
#include "runtime/codec/page_sections.h"

namespace foldkv {

// The pages and blocks of some sequences, each once, in the order in which they are met.
class SavedPages {
 public:
  // Numbers of the pages of every list of a sequence, in the order of SequenceStorage::for_each_list.
  [[nodiscard]] std::vector<std::vector<uint32_t>> add_lists(const Sequence& sequence);
  // The number of a block.
  [[nodiscard]] uint32_t add_block(const Block& block);

  [[nodiscard]] size_t size() const { return pages_.size(); }
  [[nodiscard]] int64_t bytes(size_t page) const { return pages_[page].bytes; }
  // What a page holds of its tokens, and zeros, as host memory. Valid until the next call.
  [[nodiscard]] StatusOr<std::span<const std::byte>> read(backend::Backend& backend, size_t page);

 private:
  struct Page {
    const std::byte* memory = nullptr;
    int64_t bytes = 0;
    int64_t live_tokens = 0;  // the most that a sequence has in it
    int32_t sections = -1;    // index of sections_; -1: all of it is live
  };

  [[nodiscard]] uint32_t add(const Page& page);
  [[nodiscard]] std::vector<uint32_t> add_list(const PageList& pages, int64_t token_count, int32_t sections);

  std::vector<Page> pages_;
  std::vector<std::vector<PageSection>> sections_;
  std::unordered_map<const std::byte*, uint32_t> numbers_;
  std::vector<std::byte> raw_, live_;
};

}  // namespace foldkv
