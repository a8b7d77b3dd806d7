#include "runtime/cache/token_pages.h"

#include <algorithm>

#include "absl/functional/function_ref.h"

namespace foldkv {
namespace {

constexpr int64_t kNumberBytes = 4;  // of a position and of a score alike

// Calls copy with each page's piece of slots [first, first + count), the bytes before it and its own. part: 0 for
// positions, 1 for scores.
Status for_each_piece(const PageList& pages, int64_t part, int64_t first, int64_t count,
                      absl::FunctionRef<Status(std::byte* piece, int64_t before, int64_t bytes)> copy) {
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) % pages.page_tokens();
    const int64_t run = std::min(count - done, pages.page_tokens() - row);
    std::byte* const piece = pages.page_of(first + done) + (part * pages.page_tokens() + row) * kNumberBytes;
    FOLDKV_RETURN_IF_ERROR(copy(piece, done * kNumberBytes, run * kNumberBytes));
    done += run;
  }
  return absl::OkStatus();
}

Status read(backend::Backend& backend, const PageList& pages, int64_t part, int64_t first, int64_t count,
            void* numbers) {
  return for_each_piece(pages, part, first, count, [&](std::byte* piece, int64_t before, int64_t bytes) {
    return backend.copy_to_host(static_cast<std::byte*>(numbers) + before, piece, bytes);
  });
}

Status write(backend::Backend& backend, const PageList& pages, int64_t part, int64_t first, int64_t count,
             const void* numbers) {
  return for_each_piece(pages, part, first, count, [&](std::byte* piece, int64_t before, int64_t bytes) {
    return backend.copy_to_device(piece, static_cast<const std::byte*>(numbers) + before, bytes);
  });
}

}  // namespace

PageList token_pages(int64_t page_tokens, bool scored) {
  return {Role::kPositions, page_tokens, page_tokens * kNumberBytes * (scored ? 2 : 1)};
}

std::vector<PageSection> token_sections(const PageList& pages) {
  std::vector<PageSection> sections;
  for (int64_t offset = 0; offset < pages.page_bytes(); offset += pages.page_tokens() * kNumberBytes) {
    sections.push_back({offset, kNumberBytes, 1});
  }
  return sections;
}

Status read_positions(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                      int32_t* positions) {
  return read(backend, pages, 0, first, count, positions);
}

Status write_positions(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                       const int32_t* positions) {
  return write(backend, pages, 0, first, count, positions);
}

Status read_scores(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count, float* scores) {
  return read(backend, pages, 1, first, count, scores);
}

Status write_scores(backend::Backend& backend, const PageList& pages, int64_t first, int64_t count,
                    const float* scores) {
  return write(backend, pages, 1, first, count, scores);
}

}  // namespace foldkv
