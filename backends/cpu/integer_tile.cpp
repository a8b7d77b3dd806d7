#include "backends/cpu/integer_tile.h"

#include <algorithm>

#include "backends/cpu/trellis.h"
#include "backends/interface/trellis.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr double kMostBits = 5.5;      // per stored coordinate
constexpr int64_t kShortestGroup = 16;  // coordinates, on average

int64_t most_groups(int64_t width) { return 1 + width / kShortestGroup; }

IntegerProduct product_of(const LatentPlane& plane, const IntegerLatents& latents) {
  return {.latents = latents.words, .groups = latents.groups, .group_count = std::ssize(plane.scale_groups)};
}

void decode_group(const LatentTileRequest& request, const ScaleGroup& group, const uint8_t* const* rows,
                  const IntegerLatents& latents, const IntegerScale& place, float* scales) {
  gather_scales(request, group, scales);
  IntegerGroup codes = {.rows = rows,
                        .row_bytes = request.layout.plane(request.side).code_bytes,
                        .byte_offset = group.byte_offset,
                        .count = group.count,
                        .bits = group.bits,
                        .words = latents.words + place.first_word * kTile};
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

int64_t integer_row_bytes(int64_t width) {
  return kIntegerRowStart + round_up(divide_up(width, kWordNumbers) * 4, 64);
}

void make_integer_basis(const Kernels& kernels, const float* basis, int64_t rows, int64_t width, std::byte* output) {
  const int64_t row_bytes = integer_row_bytes(width);
  for (int64_t row = 0; row < rows; ++row) {
    kernels.integer_row(basis + row * width, width, output + row * row_bytes);
  }
}

IntegerLatents IntegerLatents::take(Workspace& workspace, int64_t width) {
  IntegerLatents latents;
  latents.words = workspace.take<uint32_t>(divide_up(width, kWordNumbers) * kTile);
  latents.groups = workspace.take<IntegerScale>(most_groups(width));
  latents.scales = workspace.take<float>(most_groups(width) * kTile);
  latents.starts = workspace.take<int32_t>(most_groups(width) * kTile);
  return latents;
}

void decode_integer_latents(const LatentTileRequest& request, const IntegerLatents& latents) {
  const LatentPlane& plane = request.layout.plane(request.side);
  const uint8_t* rows[kTile] = {};
  for (int64_t token = 0; token < request.slots.live; ++token) {
    rows[token] = codes_of(request, request.slots.first + token);
  }
  for (size_t index = 0; index < plane.scale_groups.size(); ++index) {
    const ScaleGroup& group = plane.scale_groups[index];
    float* const scales = latents.scales + static_cast<int64_t>(index) * kTile;
    latents.groups[index] = {.first_word = group.first / kWordNumbers,
                             .word_count = divide_up(group.count, kWordNumbers),
                             .scales = scales,
                             .starts = latents.starts + static_cast<int64_t>(index) * kTile};
    decode_group(request, group, rows, latents, latents.groups[index], scales);
  }
  request.kernels.start_integer_sums(product_of(plane, latents));
}

void rebuild_from_integers(const Kernels& kernels, const LatentPlane& plane, const IntegerLatents& latents,
                           const std::byte* basis, int64_t rows, const float* row_start, float* output) {
  IntegerProduct product = product_of(plane, latents);
  product.rows = rows;
  product.basis = basis;
  product.basis_stride = integer_row_bytes(plane.width);
  product.row_start = row_start;
  product.output = output;
  kernels.integer_product(product);
}

}  // namespace foldkv::backend::cpu
