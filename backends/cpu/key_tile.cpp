#include "backends/cpu/key_tile.h"

#include <algorithm>

namespace foldkv::backend::cpu {
namespace {

bool is_corrected(const AttendInputs& inputs, const LatentRegion& region) {
  return region.correction_basis != nullptr && inputs.geometry.correction_rank > 0;
}

void rotate_keys(const AttendInputs& inputs, const KeyScratch& scratch, float* keys) {
  if (inputs.rotation.pairs == 0) return;
  inputs.engine.kernels.rotate_tile(inputs.rotation, scratch.cosines, scratch.sines, keys);
}

// Likewise when latents are the rows themselves.
void copy_keys(const AttendInputs& inputs, const LatentRegion& region, int64_t head, const KeyScratch& scratch,
               float* keys) {
  const int64_t head_size = inputs.geometry.head_size;
  const int64_t row = inputs.latent.first_row + head * head_size;
  const int64_t first = inputs.latent.layout->keys.coordinate_of(row);
  std::copy_n(scratch.latents + first * kTile, head_size * kTile, keys);
  if (region.key_mean == nullptr) return;
  inputs.engine.kernels.to_f32(NumberFormat::kF16, region.key_mean + row, head_size, scratch.mean);
  for (int64_t i = 0; i < head_size; ++i) {
    float* const lanes = keys + i * kTile;
    std::for_each(lanes, lanes + kTile, [&](float& number) { number += scratch.mean[i]; });
  }
}

// Keys of one head of the tile, rebuilt from scratch.latents, unrotated.
void rebuild_keys(const AttendInputs& inputs, const LatentRegion& region, int64_t head, const KeyScratch& scratch,
                  float* keys) {
  const Kernels& kernels = inputs.engine.kernels;
  const AttendGeometry& geometry = inputs.geometry;
  const LatentLayer& layer = inputs.latent;
  const int64_t row = head * geometry.head_size;
  if (region.key_mean != nullptr) {
    kernels.to_f32(NumberFormat::kF16, region.key_mean + layer.first_row + row, geometry.head_size, scratch.mean);
  }
  MatrixProduct product = {.rows = geometry.head_size,
                           .columns = kTile,
                           .depth = geometry.key_latents,
                           .a = layer.key_basis + row * layer.layout->keys.width,
                           .a_stride = layer.layout->keys.width,
                           .b = scratch.latents,
                           .b_stride = kTile,
                           .c = keys,
                           .c_stride = kTile};
  if (region.key_mean != nullptr) {
    product.start = MatrixProduct::Start::kRow;
    product.row_start = scratch.mean;
  }
  if (inputs.integer_keys) {
    const int64_t width = layer.layout->keys.width;
    rebuild_from_integers(kernels, scratch.integers,
                          {.basis = layer.fast_key_basis + (layer.first_row + row) * integer_row_bytes(width),
                           .width = width,
                           .rows = geometry.head_size,
                           .row_start = product.row_start,
                           .output = keys});
  } else {
    kernels.matrix_product(product);
  }
  if (!is_corrected(inputs, region)) return;
  kernels.to_f32(NumberFormat::kF16, region.correction_basis + (layer.first_row + row) * geometry.correction_rank,
                 geometry.head_size * geometry.correction_rank, scratch.correction);
  product.depth = geometry.correction_rank;
  product.a = scratch.correction;
  product.a_stride = geometry.correction_rank;
  product.b = scratch.coefficients;
  product.start = MatrixProduct::Start::kKeep;
  kernels.matrix_product(product);
}

}  // namespace

KeyTile key_tile(const PositionRegion& positions, int64_t first, int64_t end) {
  KeyTile tile;
  tile.slots = {first, std::min(kTile, end - first)};
  tile.range = gather_positions(positions, tile.slots, tile.positions);
  return tile;
}

KeyScratch KeyScratch::take(Workspace& workspace, const AttendGeometry& geometry) {
  KeyScratch scratch;
  scratch.latents = workspace.take<float>(geometry.key_latents * kTile);
  scratch.coefficients = workspace.take<float>(geometry.correction_rank * kTile);
  scratch.correction = workspace.take<float>(geometry.head_size * geometry.correction_rank);
  scratch.mean = workspace.take<float>(geometry.head_size);
  scratch.cosines = workspace.take<float>(geometry.rotated_pairs * kTile);
  scratch.sines = workspace.take<float>(geometry.rotated_pairs * kTile);
  scratch.rotation =
      workspace.take<float>(std::max(2 * kTile * round_up(geometry.rotated_pairs, kWidthPadding), 2 * kLargestHead));
  scratch.latent = LatentScratch::take(workspace, std::max(geometry.key_latents, geometry.value_latents));
  scratch.integers = IntegerLatents::take(workspace, geometry.key_latents);
  return scratch;
}

LogitTile logit_tile(const AttendInputs& inputs, const UnitQueries& unit, const KeyTile& tile) {
  return {.key_positions = tile.positions,
          .live = tile.slots.live,
          .all_visible = unit.sees_all(inputs.rules, tile.range),
          .scale = static_cast<float>(inputs.rules.scale),
          .soft_cap = static_cast<float>(inputs.rules.soft_cap),
          .window = inputs.rules.window};
}

void find_angles(const AttendInputs& inputs, const KeyTile& tile, const KeyScratch& scratch) {
  if (inputs.rotation.pairs == 0) return;
  inputs.engine.kernels.rotation_tile(inputs.rotation, tile.positions, scratch.rotation, scratch.cosines,
                                      scratch.sines);
}

void decode_keys(const AttendInputs& inputs, const LatentRegion& region, const KeyTile& tile, KeyScratch& scratch) {
  const LatentLayout& layout = *inputs.latent.layout;
  const LatentTileRequest request = {.kernels = inputs.engine.kernels,
                                     .layout = layout,
                                     .side = Side::kKeys,
                                     .pages = region.pages,
                                     .slots = tile.slots,
                                     .scratch = scratch.latent,
                                     .layer = inputs.latent.first_row / layout.keys.width};
  if (inputs.integer_keys) {
    decode_integer_latents(request, scratch.integers);
  } else {
    decode_latents_in_lanes(request, scratch.latents);
  }
  if (is_corrected(inputs, region)) {
    coefficients_in_lanes(inputs.engine.kernels, layout, region.pages, tile.slots, scratch.coefficients);
  }
}

void load_exact_keys(const AttendInputs& inputs, const AttendSequence& sequence, const KeyTile& tile, int64_t head,
                     const KeyScratch& scratch, float* keys) {
  const std::byte* rows[kTile];
  exact_head_rows(inputs, sequence, Side::kKeys, tile, head, rows);
  inputs.engine.kernels.transpose_tile(inputs.exact_layout.format, rows, inputs.geometry.head_size, keys);
  rotate_keys(inputs, scratch, keys);
}

void load_latent_keys(const AttendInputs& inputs, const AttendSequence& sequence, int64_t head,
                      const KeyScratch& scratch, float* keys) {
  if (inputs.latent.key_basis == nullptr) {
    copy_keys(inputs, sequence.latent, head, scratch, keys);
  } else {
    rebuild_keys(inputs, sequence.latent, head, scratch, keys);
  }
  rotate_keys(inputs, scratch, keys);
}

void exact_head_rows(const AttendInputs& inputs, const AttendSequence& sequence, Side side, const KeyTile& tile,
                     int64_t head, const std::byte* (&rows)[kTile]) {
  const int64_t first_number = (head - sequence.first_head) * inputs.geometry.head_size;
  exact_rows(inputs.exact_layout, sequence.exact, side, first_number, tile.slots, rows);
}

}  // namespace foldkv::backend::cpu
