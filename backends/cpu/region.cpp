#include "backends/cpu/region.h"

#include <algorithm>
#include <limits>

namespace foldkv::backend::cpu {

void exact_rows(const ExactLayout& layout, const ExactRegion& region, Side side, int64_t first_number, TileSlots slots,
                const std::byte* (&rows)[kTile]) {
  const int64_t offset = layout.side_offset(side) + first_number * bytes_of(layout.format);
  int64_t page = slots.first / layout.page_tokens;
  int64_t row = slots.first % layout.page_tokens;
  for (int64_t token = 0; token < kTile; ++token) {
    rows[token] = token < slots.live ? region.pages[page] + offset + row * layout.row_bytes() : nullptr;
    if (++row == layout.page_tokens) {
      row = 0;
      ++page;
    }
  }
}

PositionRange gather_positions(const PositionRegion& region, TileSlots slots, int32_t (&positions)[kTile]) {
  PositionRange range = {std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()};
  for (int64_t token = 0; token < slots.live; ++token) {
    const int64_t slot = slots.first + token;
    const auto* page = reinterpret_cast<const int32_t*>(region.pages[slot / region.page_tokens]);
    positions[token] = page[slot % region.page_tokens];
    range.smallest = std::min(range.smallest, positions[token]);
    range.largest = std::max(range.largest, positions[token]);
  }
  const bool room = positions[0] <= std::numeric_limits<int32_t>::max() - kTile;
  for (int64_t token = slots.live; token < kTile; ++token) {
    positions[token] = room ? positions[0] + static_cast<int32_t>(token) : 0;
  }
  return range;
}

}  // namespace foldkv::backend::cpu
