#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/interface/operations.h"

namespace foldkv::backend::reference {

// One token of one side in exact pages.
[[nodiscard]] inline std::byte* exact_row(const ExactLayout& layout, std::byte* const* pages, int64_t slot, Side side) {
  return pages[slot / layout.page_tokens] + layout.side_offset(side) + slot % layout.page_tokens * layout.row_bytes();
}

// One position in pages of positions.
[[nodiscard]] inline int32_t position_of(const PositionRegion& region, int64_t slot) {
  return reinterpret_cast<const int32_t*>(region.pages[slot / region.page_tokens])[slot % region.page_tokens];
}

// row [rows.width()] = the layers of token rows.slot(index), one after the other
void read_stacked_row(const StackedRows& rows, int64_t index, double* row);

}  // namespace foldkv::backend::reference
