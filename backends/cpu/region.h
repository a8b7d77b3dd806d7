#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels.h"
#include "backends/interface/layout.h"

// Where the tokens of a tile lie. A tile is the slots [first, first + live) of a region, live at most 64; the arrays
// have 64 entries, of which those beyond live are absent.
namespace foldkv::backend::cpu {

struct TileSlots {
  int64_t first = 0;
  int64_t live = 0;
};

// Rows of one side from a number on (0, or where a head begins); null beyond live.
void exact_rows(const ExactLayout& layout, const ExactRegion& region, Side side, int64_t first_number, TileSlots slots,
                const std::byte* (&rows)[kTile]);

struct PositionRange {
  int32_t smallest = 0;
  int32_t largest = 0;
};
// Absent tokens continue as a run, so that a run stays one. The range is that of live tokens.
PositionRange gather_positions(const PositionRegion& region, TileSlots slots, int32_t (&positions)[kTile]);

[[nodiscard]] inline std::byte* latent_page(std::byte* const* pages, const LatentLayout& layout, int64_t slot) {
  return pages[slot / layout.page_tokens];
}

}  // namespace foldkv::backend::cpu
