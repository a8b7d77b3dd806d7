#pragma once

#include <cstdint>

#include "backends/interface/backend.h"
#include "runtime/codec/page_sections.h"
#include "runtime/memory/page_list.h"

// Pages with what is known of each token besides its keys and values.
namespace foldkv {

// Positions, and a score of each token where an eviction policy keeps some:
//
//   positions [page_tokens] int32 | scores [page_tokens] f32, or nothing
[[nodiscard]] PageList token_pages(int64_t page_tokens, bool scored);

// Where they lie in a page.
[[nodiscard]] std::vector<PageSection> token_sections(const PageList& pages);

// Copies of slots [first, first + count) to and from the host.
[[nodiscard]] Status read_positions(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                                    int32_t* positions);
[[nodiscard]] Status write_positions(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                                     const int32_t* positions);
// Of pages made with scores.
[[nodiscard]] Status read_scores(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                                 float* scores);
[[nodiscard]] Status write_scores(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                                  const float* scores);

}  // namespace foldkv
