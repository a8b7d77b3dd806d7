#include "runtime/codec/page_sections.h"

#include <cstring>

#include "runtime/base/checked.h"

namespace foldkv {
namespace {

void add_section(std::vector<PageSection>& sections, const PageSection& section) {
  if (section.bytes > 0) sections.push_back(section);
}

void add_plane(std::vector<PageSection>& sections, const backend::LatentPlane& plane, int64_t page_tokens) {
  add_section(sections, {plane.codes_offset, plane.code_bytes, 1});
  add_section(sections, {plane.scales_offset, plane.scale_bytes, 1});
  add_section(sections, {plane.channels_offset, plane.channel_bytes, backend::kChannelTokens});
  const backend::MergedHeads& merged = plane.merged;
  if (merged.layers == 0) return;
  const int64_t retained = int64_t{merged.heads} * merged.retained;
  add_section(sections, {merged.norms_offset, int64_t{merged.layers} * merged.heads * 2, 1});
  add_section(sections, {merged.slots_offset, retained, page_tokens});
  add_section(sections, {merged.rows_offset, retained * merged.layers * merged.head_size * 2, page_tokens});
}

}  // namespace

std::vector<PageSection> page_sections(const backend::ExactLayout& layout) {
  return {{layout.side_offset(backend::Side::kKeys), layout.row_bytes(), 1},
          {layout.side_offset(backend::Side::kValues), layout.row_bytes(), 1}};
}

std::vector<PageSection> page_sections(const backend::LatentLayout& layout) {
  std::vector<PageSection> sections;
  add_plane(sections, layout.keys, layout.page_tokens);
  add_plane(sections, layout.values, layout.page_tokens);
  add_section(sections, {layout.coefficients_offset, layout.correction_rank * bytes_of(NumberFormat::kF16), 1});
  return sections;
}

void copy_live(const std::vector<PageSection>& sections, int64_t token_count, const std::byte* from, std::byte* to) {
  for (const PageSection& section : sections) {
    const int64_t bytes = divide_up(token_count, section.tokens) * section.bytes;
    std::memcpy(to + section.offset, from + section.offset, static_cast<size_t>(bytes));
  }
}

}  // namespace foldkv
