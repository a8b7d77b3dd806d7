#include "backends/cpu/integer_tile.h"

#include <algorithm>

#include "backends/interface/trellis.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr double kMostBits = 5.5;       // per stored coordinate
constexpr int64_t kShortestGroup = 16;  // coordinates, on average
constexpr int32_t kFineBits = 6;        // from which on codes are fine

int64_t most_groups(int64_t width) { return 1 + width / kShortestGroup; }
// Those that are met twice begin within the fine numbers.
int64_t most_scales(int64_t width) { return most_groups(width) + kFineWords; }

// Coordinates of a group that are stored so finely that rounding the basis to integers would be most of the error.
int64_t fine_count(const ScaleGroup& group) {
  if (group.code != Code::kUniform || group.bits < kFineBits) return 0;
  return std::clamp<int64_t>(kFineNumbers - group.first, 0, group.count);
}

void decode_group(const LatentTileRequest& request, const ScaleGroup& group, const uint8_t* const* rows, float* scales,
                  uint32_t* words) {
  gather_scales(request, group, scales);
  IntegerGroup codes = {.rows = rows,
                        .row_bytes = request.layout.plane(request.side).code_bytes,
                        .byte_offset = group.byte_offset,
                        .count = group.count,
                        .bits = group.bits,
                        .words = words};
  if (group.code == Code::kTrellis) {
    const TrellisRate& rate = *find_trellis_rate(group.bits, group.step);
    codes.tables = rate.table[0];
    codes.step = group.step;
    codes.continues = group.continues;
    const float unit = rate.gain / kTrellisUnit;
    std::for_each(scales, scales + kTile, [unit](float& scale) { scale *= unit; });
  }
  request.kernels.decode_integers(codes);
}

}  // namespace

bool takes_integers(const LatentPlane& plane) {
  if (plane.merged.layers > 0 || plane.stored_width == 0) return false;
  if (std::ssize(plane.scale_groups) > most_groups(plane.stored_width)) return false;
  int32_t next = 0;
  for (const ScaleGroup& group : plane.scale_groups) {
    if (group.code != Code::kUniform && group.code != Code::kTrellis) return false;
    if (group.first != next || group.first % kWordNumbers != 0) return false;
    next = group.first + group.count;
  }
  return static_cast<double>(plane.code_bytes) * 8.0 <= kMostBits * static_cast<double>(plane.stored_width);
}

int64_t integer_row_bytes(int64_t width) { return kIntegerRowStart + kFineNumbers + round_up(width, 64); }

void make_integer_basis(const Kernels& kernels, const float* basis, int64_t rows, int64_t width, std::byte* output) {
  const int64_t row_bytes = integer_row_bytes(width);
  for (int64_t row = 0; row < rows; ++row) {
    kernels.integer_row(basis + row * width, width, output + row * row_bytes);
  }
}

IntegerLatents IntegerLatents::take(Workspace& workspace, int64_t width) {
  IntegerLatents latents;
  latents.words = workspace.take<uint32_t>(divide_up(width, kWordNumbers) * kTile);
  latents.groups = workspace.take<IntegerScale>(most_scales(width));
  latents.scales = workspace.take<float>(most_scales(width) * kTile);
  latents.starts = workspace.take<int32_t>(most_scales(width) * kTile);
  return latents;
}

void decode_integer_latents(const LatentTileRequest& request, IntegerLatents& latents) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const uint8_t* rows[kTile] = {};
  for (int64_t token = 0; token < request.slots.live; ++token) {
    rows[token] = codes_of(request, request.slots.first + token);
  }
  int64_t& count = latents.group_count;
  count = 0;
  const auto add = [&](const ScaleGroup& group, int64_t basis_word, int64_t coordinates) {
    IntegerScale& scale = latents.groups[count];
    scale = {.first_word = group.first / kWordNumbers,
             .word_count = divide_up(coordinates, kWordNumbers),
             .basis_word = basis_word + group.first / kWordNumbers,
             .scales = latents.scales + count * kTile,
             .starts = latents.starts + count * kTile};
    return latents.scales + count++ * kTile;
  };
  for (const ScaleGroup& group : plane.scale_groups) {
    float* const scales = add(group, kFineWords, group.count);
    decode_group(request, group, rows, scales, latents.words + group.first / kWordNumbers * kTile);
    if (const int64_t fine = fine_count(group); fine > 0) {
      std::transform(scales, scales + kTile, add(group, 0, fine), [](float scale) { return scale * kFineUnit; });
    }
  }
  request.kernels.start_integer_sums({.latents = latents.words, .groups = latents.groups, .group_count = count});
}

void rebuild_from_integers(const Kernels& kernels, const IntegerLatents& latents, const IntegerRebuild& rebuild) {
  kernels.integer_product({.rows = rebuild.rows,
                           .basis = rebuild.basis,
                           .basis_stride = integer_row_bytes(rebuild.width),
                           .latents = latents.words,
                           .groups = latents.groups,
                           .group_count = latents.group_count,
                           .row_start = rebuild.row_start,
                           .output = rebuild.output});
}

}  // namespace foldkv::backend::cpu
