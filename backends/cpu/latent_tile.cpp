#include "backends/cpu/latent_tile.h"

#include <algorithm>
#include <cstring>

namespace foldkv::backend::cpu {
namespace {

// Kernels read whole registers, up to 64 bytes beyond a group's codes.
int64_t code_row_bytes(int64_t width) { return round_up(width, 64) + 64; }

const uint8_t* codes_of(const LatentTileRequest& request, int64_t slot) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const std::byte* page = latent_page(request.pages, request.layout, slot);
  const int64_t row = slot % request.layout.page_tokens;
  return reinterpret_cast<const uint8_t*>(page + plane.codes_offset + row * plane.code_bytes);
}

const uint16_t* scales_of(const LatentTileRequest& request, int64_t slot) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const std::byte* page = latent_page(request.pages, request.layout, slot);
  const int64_t row = slot % request.layout.page_tokens;
  return reinterpret_cast<const uint16_t*>(page + plane.scales_offset) + row * std::ssize(plane.scale_groups);
}

// Scales [64] of one group, zero for absent tokens.
void gather_scales(const LatentTileRequest& request, int64_t group, float* scales) {
  uint16_t halves[kTile] = {};
  for (int64_t token = 0; token < request.slots.live; ++token) {
    halves[token] = scales_of(request, request.slots.first + token)[group];
  }
  request.kernels.to_f32(NumberFormat::kF16, halves, kTile, scales);
}

// Codes of all tokens, where kernels may read beyond them; zeros for absent tokens.
CodeTile gather_codes(const LatentTileRequest& request) {
  const int64_t code_bytes = request.layout.plane(request.side).code_bytes;
  const int64_t row_bytes = code_row_bytes(code_bytes);
  for (int64_t token = 0; token < kTile; ++token) {
    uint8_t* row = request.scratch.code_rows + token * row_bytes;
    if (token < request.slots.live) {
      std::memcpy(row, codes_of(request, request.slots.first + token), static_cast<size_t>(code_bytes));
    } else {
      std::memset(row, 0, static_cast<size_t>(code_bytes));
    }
  }
  return {.rows = request.scratch.code_rows, .row_stride = row_bytes};
}

void choose_group(const LatentTileRequest& request, int64_t index, float* scales, CodeTile& tile) {
  const ScaleGroup& group = request.layout.plane(request.side).scale_groups[static_cast<size_t>(index)];
  gather_scales(request, index, scales);
  tile.byte_offset = group.byte_offset;
  tile.count = group.count;
  tile.bits = group.bits;
  tile.scales = scales;
}

}  // namespace

LatentScratch LatentScratch::take(Workspace& workspace, int64_t width) {
  LatentScratch scratch;
  scratch.code_rows = workspace.take<uint8_t>(kTile * code_row_bytes(width));
  scratch.code_words = workspace.take<uint32_t>(kTile * round_up(divide_up(width, 4), kWidthPadding));
  return scratch;
}

void decode_latents_in_lanes(const LatentTileRequest& request, float* latents) {
  const LatentPlane& plane = request.layout.plane(request.side);
  CodeTile tile = gather_codes(request);
  for (int64_t index = 0; index < std::ssize(plane.scale_groups); ++index) {
    float scales[kTile];
    choose_group(request, index, scales, tile);
    const int64_t first = plane.scale_groups[static_cast<size_t>(index)].first;
    request.kernels.decode_tile(tile, request.scratch.code_words, latents + first * kTile);
  }
}

void decode_latents_in_rows(const LatentTileRequest& request, float* latents, int64_t stride) {
  const LatentPlane& plane = request.layout.plane(request.side);
  CodeTile tile = gather_codes(request);
  for (int64_t index = 0; index < std::ssize(plane.scale_groups); ++index) {
    float scales[kTile];
    choose_group(request, index, scales, tile);
    const int64_t first = plane.scale_groups[static_cast<size_t>(index)].first;
    request.kernels.decode_rows(tile, request.slots.live, latents + first, stride);
  }
  for (int64_t token = 0; token < request.slots.live; ++token) {
    std::fill(latents + token * stride + plane.stored_width, latents + (token + 1) * stride, 0.0f);
  }
}

void coefficients_in_lanes(const Kernels& kernels, const LatentLayout& layout, std::byte* const* pages,
                           TileSlots slots, float* coefficients) {
  const std::byte* rows[kTile] = {};
  for (int64_t token = 0; token < slots.live; ++token) {
    const int64_t slot = slots.first + token;
    rows[token] = latent_page(pages, layout, slot) + layout.coefficients_offset +
                  slot % layout.page_tokens * layout.correction_rank * 2;
  }
  kernels.transpose_tile(NumberFormat::kF16, rows, layout.correction_rank, coefficients);
}

}  // namespace foldkv::backend::cpu
