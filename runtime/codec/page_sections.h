#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/interface/layout.h"

namespace foldkv {

// An array in a page: `bytes` for every `tokens` adjacent slots.
struct PageSection {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t tokens = 1;
};

[[nodiscard]] std::vector<PageSection> page_sections(const backend::ExactLayout& layout);
[[nodiscard]] std::vector<PageSection> page_sections(const backend::LatentLayout& layout);

// What slots [0, token_count) have in a page, to a page of zeros.
void copy_live(const std::vector<PageSection>& sections, int64_t token_count, const std::byte* from, std::byte* to);

}  // namespace foldkv
