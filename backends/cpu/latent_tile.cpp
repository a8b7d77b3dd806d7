#include "backends/cpu/latent_tile.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/trellis.h"
#include "backends/interface/asymmetric.h"
#include "backends/interface/merged_page.h"
#include "backends/interface/trellis_scale.h"

namespace foldkv::backend::cpu {
namespace {

// Kernels read whole registers, up to 64 bytes beyond a group's codes, and the byte before those of a trellis group.
int64_t code_row_bytes(int64_t width) { return round_up(width, 64) + 64; }

const std::byte* scales_of(const LatentTileRequest& request, int64_t slot) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const std::byte* page = latent_page(request.pages, request.layout, slot);
  return page + plane.scales_offset + slot % request.layout.page_tokens * plane.scale_bytes;
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

TrellisTile trellis_tile(const ScaleGroup& group, const CodeTile& codes) {
  return {.codes = codes, .step = group.step, .continues = group.continues, .tables = trellis_values(group)};
}

void choose_group(const LatentTileRequest& request, const ScaleGroup& group, float* scales, CodeTile& tile) {
  gather_scales(request, group, scales);
  tile.byte_offset = group.byte_offset;
  tile.count = group.count;
  tile.bits = group.bits;
  tile.scales = scales;
}

// Where the number of a coordinate and token of a tile lies.
struct TilePlace {
  float* numbers;
  int64_t coordinate_stride;
  int64_t token_stride;

  [[nodiscard]] float& at(int64_t coordinate, int64_t token) const {
    return numbers[coordinate * coordinate_stride + token * token_stride];
  }
};

void add_centres(const LatentTileRequest& request, const ScaleGroup& group, const TilePlace& place) {
  for (int64_t token = 0; token < request.slots.live; ++token) {
    const std::byte* const scales = scales_of(request, request.slots.first + token) + group.scale_offset;
    const float centre = asymmetric_centre(load_range(scales), group.bits);
    for (int32_t i = 0; i < group.count; ++i) place.at(group.first + i, token) += centre;
  }
}

// The numbers hold codes about their middle.
void scale_channels(const LatentTileRequest& request, const ScaleGroup& group, const TilePlace& place) {
  const LatentPlane& plane = request.layout.plane(request.side);
  for (int64_t token = 0; token < request.slots.live;) {
    const int64_t slot = request.slots.first + token;
    const int64_t end = std::min(request.slots.live, token + kChannelTokens - slot % kChannelTokens);
    const std::byte* const ranges = latent_page(request.pages, request.layout, slot) +
                                    plane.channels_of(group, slot % request.layout.page_tokens);
    for (int32_t i = 0; i < group.count; ++i) {
      const AsymmetricRange range = load_range(ranges + i * kAsymmetricRangeBytes);
      const float scale = f32_from_f16(range.scale);
      const float centre = asymmetric_centre(range, group.bits);
      for (int64_t t = token; t < end; ++t) {
        float& number = place.at(group.first + i, t);
        number = centre + number * scale;
      }
    }
    token = end;
  }
}

void add_offsets(const LatentTileRequest& request, const ScaleGroup& group, const TilePlace& place) {
  if (group.code == Code::kAsymmetric) add_centres(request, group, place);
  if (group.code == Code::kChannel) scale_channels(request, group, place);
}

// Halves and merged heads need no decoder.
void read_halves(const LatentTileRequest& request, const TilePlace& place) {
  const LatentPlane& plane = request.layout.plane(request.side);
  for (int64_t token = 0; token < request.slots.live; ++token) {
    const int64_t slot = request.slots.first + token;
    const std::byte* const page = latent_page(request.pages, request.layout, slot);
    const int64_t row = slot % request.layout.page_tokens;
    for (int64_t head = 0; head < plane.merged.heads; ++head) {
      read_merged_head(plane, page, row, request.layer, head, &place.at(head * plane.merged.head_size, token),
                       place.coordinate_stride);
    }
    if (plane.merged.layers > 0) continue;
    const auto* const halves = reinterpret_cast<const uint16_t*>(page + plane.codes_offset + row * plane.code_bytes);
    for (int64_t i = 0; i < plane.stored_width; ++i) place.at(i, token) = f32_from_f16(halves[i]);
  }
}

void clear_padding(const LatentTileRequest& request, float* rows, int64_t stride) {
  const int64_t width = request.layout.plane(request.side).stored_width;
  for (int64_t token = 0; token < request.slots.live; ++token) {
    std::fill(rows + token * stride + width, rows + (token + 1) * stride, 0.0f);
  }
}

}  // namespace

const uint8_t* codes_of(const LatentTileRequest& request, int64_t slot) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const std::byte* page = latent_page(request.pages, request.layout, slot);
  const int64_t row = slot % request.layout.page_tokens;
  return reinterpret_cast<const uint8_t*>(page + plane.codes_offset + row * plane.code_bytes);
}

void gather_scales(const LatentTileRequest& request, const ScaleGroup& group, float* scales) {
  if (group.code == Code::kChannel) {
    std::fill_n(scales, kTile, 1.0f);
    return;
  }
  if (group.code == Code::kTrellis) {
    std::fill_n(scales, kTile, 0.0f);
    for (int64_t token = 0; token < request.slots.live; ++token) {
      const std::byte* place = scales_of(request, request.slots.first + token) + group.scale_offset;
      scales[token] = trellis_scale(std::to_integer<uint8_t>(*place), group.spread);
    }
    return;
  }
  uint16_t halves[kTile] = {};
  for (int64_t token = 0; token < request.slots.live; ++token) {
    std::memcpy(halves + token, scales_of(request, request.slots.first + token) + group.scale_offset, sizeof(uint16_t));
  }
  request.kernels.to_f32(NumberFormat::kF16, halves, kTile, scales);
}

LatentScratch LatentScratch::take(Workspace& workspace, int64_t width) {
  LatentScratch scratch;
  scratch.code_rows = workspace.take<uint8_t>(kTile * code_row_bytes(width));
  scratch.code_words = workspace.take<uint32_t>(kTile * (1 + round_up(divide_up(width, 4), kWidthPadding)));
  return scratch;
}

void decode_latents_in_lanes(const LatentTileRequest& request, float* latents) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const TilePlace place = {latents, kTile, 1};
  if (plane.halves()) {
    std::fill_n(latents, plane.stored_width * kTile, 0.0f);
    read_halves(request, place);
    return;
  }
  CodeTile tile = gather_codes(request);
  for (const ScaleGroup& group : plane.scale_groups) {
    float scales[kTile];
    choose_group(request, group, scales, tile);
    float* output = latents + group.first * kTile;
    if (group.code == Code::kTrellis) {
      request.kernels.decode_trellis_tile(trellis_tile(group, tile), request.scratch.code_words, output);
    } else {
      request.kernels.decode_tile(tile, request.scratch.code_words, output);
    }
    add_offsets(request, group, place);
  }
}

void decode_latents_in_rows(const LatentTileRequest& request, float* latents, int64_t stride) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const TilePlace place = {latents, 1, stride};
  if (plane.halves()) {
    read_halves(request, place);
    clear_padding(request, latents, stride);
    return;
  }
  CodeTile tile = gather_codes(request);
  for (const ScaleGroup& group : plane.scale_groups) {
    float scales[kTile];
    choose_group(request, group, scales, tile);
    if (group.code == Code::kTrellis) {
      request.kernels.decode_trellis_rows(trellis_tile(group, tile), request.slots.live, latents + group.first, stride);
    } else {
      request.kernels.decode_rows(tile, request.slots.live, latents + group.first, stride);
    }
    add_offsets(request, group, place);
  }
  clear_padding(request, latents, stride);
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
