#pragma once

#include <cstdint>

#include "backends/cpu/kernels.h"
#include "backends/cpu/region.h"
#include "backends/cpu/workspace.h"
#include "backends/interface/layout.h"

// Latents of a tile, decoded from their pages.
namespace foldkv::backend::cpu {

// Scratch memory for latents of up to `width` coordinates.
struct LatentScratch {
  uint8_t* code_rows = nullptr;    // [64][code_row_bytes(width)]
  uint32_t* code_words = nullptr;  // [words of a scale group][64]

  static LatentScratch take(Workspace& workspace, int64_t width);
};

struct LatentTileRequest {
  const Kernels& kernels;
  const LatentLayout& layout;
  Side side;
  std::byte* const* pages;
  TileSlots slots;
  LatentScratch scratch;
  int64_t layer = 0;  // of a merged plane, whose latents are the rows of one layer
};

// Where the codes of a slot begin.
[[nodiscard]] const uint8_t* codes_of(const LatentTileRequest& request, int64_t slot);
// Scales [64] of one group, zero for absent tokens; ones for channel groups, whose codes are decoded as they are.
void gather_scales(const LatentTileRequest& request, const ScaleGroup& group, float* scales);

// [stored width][64]; the latents of absent tokens are zero.
void decode_latents_in_lanes(const LatentTileRequest& request, float* latents);
// [live][stride], zero from the stored width to the stride.
void decode_latents_in_rows(const LatentTileRequest& request, float* latents, int64_t stride);
// Correction coefficients [rank][64].
void coefficients_in_lanes(const Kernels& kernels, const LatentLayout& layout, std::byte* const* pages,
                           TileSlots slots, float* coefficients);

}  // namespace foldkv::backend::cpu
