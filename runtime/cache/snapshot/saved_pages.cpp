#include "runtime/cache/snapshot/saved_pages.h"

#include <algorithm>

#include "runtime/cache/token_pages.h"

namespace foldkv {

std::vector<std::vector<uint32_t>> SavedPages::add_lists(const Sequence& sequence) {
  const SequenceStorage& storage = sequence.storage();
  const PreparedProfile& profile = sequence.shared_profile()->data;
  const auto add_sections = [&](std::vector<PageSection> sections) {
    sections_.push_back(std::move(sections));
    return static_cast<int32_t>(sections_.size()) - 1;
  };
  std::vector<std::vector<uint32_t>> lists;
  for (const ExactSet& set : storage.exact_sets()) {
    lists.push_back(add_list(set.tokens, set.token_count, add_sections(token_sections(set.tokens))));
    for (const int32_t index : set.planes) {
      const ExactPlane& plane = storage.planes()[static_cast<size_t>(index)];
      lists.push_back(add_list(plane.pages, set.token_count, add_sections(page_sections(plane.layout))));
    }
  }
  for (const LatentSet& set : storage.latent_sets()) {
    lists.push_back(add_list(set.tokens, set.token_count, add_sections(token_sections(set.tokens))));
    for (const int32_t group : set.groups) {
      const auto index = static_cast<size_t>(group);
      lists.push_back(add_list(storage.groups()[index].pages, set.token_count,
                               add_sections(page_sections(profile.groups[index].layouts[sequence.policy().plan]))));
    }
  }
  return lists;
}

std::vector<uint32_t> SavedPages::add_list(const PageList& pages, int64_t token_count, int32_t sections) {
  std::vector<uint32_t> numbers;
  for (int64_t page = 0; page < pages.page_count(); ++page) {
    const int64_t live = std::min(pages.page_tokens(), token_count - page * pages.page_tokens());
    numbers.push_back(add({pages.pages()[page], pages.page_bytes(), live, sections}));
  }
  return numbers;
}

uint32_t SavedPages::add_block(const Block& block) { return add({block.data(), block.bytes(), 0, -1}); }

uint32_t SavedPages::add(const Page& page) {
  const auto [found, is_new] = numbers_.try_emplace(page.memory, static_cast<uint32_t>(pages_.size()));
  if (is_new) {
    pages_.push_back(page);
  } else {
    Page& known = pages_[found->second];
    known.live_tokens = std::max(known.live_tokens, page.live_tokens);
  }
  return found->second;
}

StatusOr<std::span<const std::byte>> SavedPages::read(backend::Backend& backend, size_t index) {
  const Page& page = pages_[index];
  raw_.resize(static_cast<size_t>(page.bytes));
  FOLDKV_RETURN_IF_ERROR(backend.copy_to_host(raw_.data(), page.memory, page.bytes));
  if (page.sections < 0) return std::span<const std::byte>(raw_);
  live_.assign(static_cast<size_t>(page.bytes), std::byte{0});
  copy_live(sections_[static_cast<size_t>(page.sections)], page.live_tokens, raw_.data(), live_.data());
  return std::span<const std::byte>(live_);
}

}  // namespace foldkv
