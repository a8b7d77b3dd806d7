#include "backends/cpu/attend_unit.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/partitions.h"
#include "backends/cpu/region.h"

namespace foldkv::backend::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct TileView {
  TileSlots slots;
  int32_t positions[kTile];
  PositionRange range;
};

bool is_hidden(const AttentionRules& rules, const UnitQueries& unit, const PositionRange& keys) {
  return keys.smallest > unit.largest_position ||
         (rules.window > 0 && keys.largest <= unit.smallest_position - rules.window);
}

bool is_visible(const AttentionRules& rules, const UnitQueries& unit, const PositionRange& keys) {
  return keys.largest <= unit.smallest_position &&
         (rules.window == 0 || keys.smallest > unit.largest_position - rules.window);
}

void rotate_keys(const AttendContext& context, UnitScratch& scratch) {
  if (context.rotation.pairs == 0) return;
  context.engine.kernels.rotate_tile(context.rotation, scratch.cosines, scratch.sines, scratch.keys);
}

// Scores of the queries of one head against scratch.keys.
void score_head(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, int64_t head) {
  const AttendGeometry& geometry = context.geometry;
  const int64_t rows = unit.queries_of_head(geometry);
  context.engine.kernels.matrix_product({.rows = rows,
                                         .columns = kTile,
                                         .depth = geometry.head_size,
                                         .a = scratch.queries + head * rows * geometry.head_size,
                                         .a_stride = geometry.head_size,
                                         .b = scratch.keys,
                                         .b_stride = kTile,
                                         .c = scratch.scores + head * rows * kTile,
                                         .c_stride = kTile});
}

void weigh_tile(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, const TileView& tile,
                const PartSums& result) {
  const AttentionRules& rules = context.request.rules;
  context.engine.kernels.softmax_tile({.rows = unit.count(context.geometry),
                                       .scores = scratch.scores,
                                       .query_positions = scratch.query_positions,
                                       .key_positions = tile.positions,
                                       .live = tile.slots.live,
                                       .all_visible = is_visible(rules, unit, tile.range),
                                       .scale = static_cast<float>(rules.scale),
                                       .soft_cap = static_cast<float>(rules.soft_cap),
                                       .window = rules.window,
                                       .maxima = result.maxima,
                                       .sums = result.weights,
                                       .factors = scratch.factors});
}

struct WeightedRows {
  int64_t first_query = 0;
  int64_t queries = 0;
  int64_t live = 0;
  const float* rows = nullptr;  // [live][width]
  int64_t width = 0;
};
// sums = sums * factor + weights * rows
void add_weighted_rows(const AttendContext& context, const UnitScratch& scratch, const WeightedRows& weighted,
                       float* sums) {
  context.engine.kernels.matrix_product({.rows = weighted.queries,
                                         .columns = weighted.width,
                                         .depth = weighted.live,
                                         .a = scratch.scores + weighted.first_query * kTile,
                                         .a_stride = kTile,
                                         .b = weighted.rows,
                                         .b_stride = weighted.width,
                                         .c = sums + weighted.first_query * weighted.width,
                                         .c_stride = weighted.width,
                                         .start = MatrixProduct::Start::kScaled,
                                         .row_start = scratch.factors + weighted.first_query});
}

// Likewise when latents are the rows themselves.
void copy_keys(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, int64_t head) {
  const AttendGeometry& geometry = context.geometry;
  const LatentLayer& layer = context.request.latent;
  const int64_t row = layer.first_row + head * geometry.head_size;
  const int64_t first = layer.layout->keys.coordinate_of(row);
  std::copy_n(scratch.key_latents + first * kTile, geometry.head_size * kTile, scratch.keys);
  const uint16_t* mean = unit.sequence->latent.key_mean;
  if (mean == nullptr) return;
  context.engine.kernels.to_f32(NumberFormat::kF16, mean + row, geometry.head_size, scratch.mean);
  for (int64_t i = 0; i < geometry.head_size; ++i) {
    float* const lanes = scratch.keys + i * kTile;
    std::for_each(lanes, lanes + kTile, [&](float& number) { number += scratch.mean[i]; });
  }
}

// Keys of one head of the tile, rebuilt from scratch.key_latents, unrotated.
void rebuild_keys(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, int64_t head) {
  const Kernels& kernels = context.engine.kernels;
  const AttendGeometry& geometry = context.geometry;
  const LatentLayer& layer = context.request.latent;
  const LatentRegion& region = unit.sequence->latent;
  if (layer.key_basis == nullptr) {
    copy_keys(context, unit, scratch, head);
    return;
  }
  const int64_t row = head * geometry.head_size;
  MatrixProduct product = {.rows = geometry.head_size,
                           .columns = kTile,
                           .depth = geometry.key_latents,
                           .a = layer.key_basis + row * layer.layout->keys.width,
                           .a_stride = layer.layout->keys.width,
                           .b = scratch.key_latents,
                           .b_stride = kTile,
                           .c = scratch.keys,
                           .c_stride = kTile};
  if (region.key_mean != nullptr) {
    kernels.to_f32(NumberFormat::kF16, region.key_mean + layer.first_row + row, geometry.head_size, scratch.mean);
    product.start = MatrixProduct::Start::kRow;
    product.row_start = scratch.mean;
  }
  kernels.matrix_product(product);
  if (region.correction_basis == nullptr || geometry.correction_rank == 0) return;
  kernels.to_f32(NumberFormat::kF16, region.correction_basis + (layer.first_row + row) * geometry.correction_rank,
                 geometry.head_size * geometry.correction_rank, scratch.correction);
  product.depth = geometry.correction_rank;
  product.a = scratch.correction;
  product.a_stride = geometry.correction_rank;
  product.b = scratch.coefficients;
  product.start = MatrixProduct::Start::kKeep;
  kernels.matrix_product(product);
}

void attend_latent_tile(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                        const TileView& tile, const PartSums& result) {
  const AttendGeometry& geometry = context.geometry;
  const LatentLayout& layout = *context.request.latent.layout;
  const LatentRegion& region = unit.sequence->latent;
  LatentTileRequest latents = {.kernels = context.engine.kernels,
                               .layout = layout,
                               .side = Side::kKeys,
                               .pages = region.pages,
                               .slots = tile.slots,
                               .scratch = scratch.latent,
                               .layer = context.request.latent.first_row / layout.keys.width};
  decode_latents_in_lanes(latents, scratch.key_latents);
  if (region.correction_basis != nullptr && geometry.correction_rank > 0) {
    coefficients_in_lanes(context.engine.kernels, layout, region.pages, tile.slots, scratch.coefficients);
  }
  for (int64_t head = 0; head < unit.heads; ++head) {
    rebuild_keys(context, unit, scratch, unit.first_head + head);
    rotate_keys(context, scratch);
    score_head(context, unit, scratch, head);
  }
  weigh_tile(context, unit, scratch, tile, result);
  latents.side = Side::kValues;
  decode_latents_in_rows(latents, scratch.value_latents, geometry.value_width);
  add_weighted_rows(context, scratch,
                    {.queries = unit.count(geometry),
                     .live = tile.slots.live,
                     .rows = scratch.value_latents,
                     .width = geometry.value_width},
                    result.sums);
}

// One head's values of the tile as f32 rows, padded with zeros.
void load_values(const AttendContext& context, const std::byte* const* rows, int64_t live, float* values) {
  const AttendGeometry& geometry = context.geometry;
  for (int64_t token = 0; token < live; ++token) {
    float* row = values + token * geometry.head_width;
    context.engine.kernels.to_f32(context.request.exact_layout.format, rows[token], geometry.head_size, row);
    std::fill(row + geometry.head_size, row + geometry.head_width, 0.0f);
  }
}

void attend_exact_tile(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                       const TileView& tile, const PartSums& result) {
  const AttendGeometry& geometry = context.geometry;
  const ExactLayout& layout = context.request.exact_layout;
  const ExactRegion& region = unit.sequence->exact;
  const std::byte* rows[kTile];
  for (int64_t head = 0; head < unit.heads; ++head) {
    const int64_t first_number = (unit.first_head + head) * geometry.head_size;
    exact_rows(layout, region, Side::kKeys, first_number, tile.slots, rows);
    context.engine.kernels.transpose_tile(layout.format, rows, geometry.head_size, scratch.keys);
    rotate_keys(context, scratch);
    score_head(context, unit, scratch, head);
  }
  weigh_tile(context, unit, scratch, tile, result);
  const int64_t queries = unit.queries_of_head(geometry);
  for (int64_t head = 0; head < unit.heads; ++head) {
    exact_rows(layout, region, Side::kValues, (unit.first_head + head) * geometry.head_size, tile.slots, rows);
    load_values(context, rows, tile.slots.live, scratch.values);
    add_weighted_rows(context, scratch,
                      {.first_query = head * queries,
                       .queries = queries,
                       .live = tile.slots.live,
                       .rows = scratch.values,
                       .width = geometry.head_width},
                      result.sums);
  }
}

struct PartTiles {
  SlotRange slots;
  const PositionRegion& positions;
  int64_t width;  // of the sums
  void (*attend_tile)(const AttendContext&, const UnitQueries&, UnitScratch&, const TileView&, const PartSums&);
};

void attend_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, const PartTiles& part,
                 const PartSums& result) {
  const int64_t queries = unit.count(context.geometry);
  std::fill_n(result.maxima, queries, kMinusInfinity);
  std::fill_n(result.weights, queries, 0.0f);
  bool begun = false;
  for (int64_t slot = part.slots.first; slot < part.slots.end; slot += kTile) {
    TileView tile;
    tile.slots = {slot, std::min(kTile, part.slots.end - slot)};
    tile.range = gather_positions(part.positions, tile.slots, tile.positions);
    if (is_hidden(context.request.rules, unit, tile.range)) continue;
    if (!begun) std::fill_n(result.sums, queries * part.width, 0.0f);
    begun = true;
    if (context.rotation.pairs > 0) {
      context.engine.kernels.rotation_tile(context.rotation, tile.positions, scratch.rotation, scratch.cosines,
                                           scratch.sines);
    }
    part.attend_tile(context, unit, scratch, tile, result);
  }
}

}  // namespace

UnitQueries gather_queries(const AttendContext& context, UnitScratch& scratch, UnitQueries unit) {
  const AttendGeometry& geometry = context.geometry;
  const int32_t* positions = unit.sequence->query_positions + unit.first_row;
  unit.smallest_position = *std::min_element(positions, positions + unit.rows);
  unit.largest_position = *std::max_element(positions, positions + unit.rows);
  float* query = scratch.queries;
  int32_t* query_position = scratch.query_positions;
  for (int64_t head = unit.first_head; head < unit.first_head + unit.heads; ++head) {
    for (int64_t row = 0; row < unit.rows; ++row) {
      const int64_t row_of_request = unit.sequence->first_row + unit.first_row + row;
      const float* from = context.request.queries +
                          (row_of_request * geometry.query_heads + head * geometry.group) * geometry.head_size;
      query = std::copy_n(from, geometry.group * geometry.head_size, query);
      query_position = std::fill_n(query_position, geometry.group, positions[row]);
    }
  }
  return unit;
}

void attend_latent_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, int64_t part,
                        const PartSums& result) {
  attend_part(context, unit, scratch,
              {.slots = partition(part, unit.sequence->latent.token_count),
               .positions = unit.sequence->latent_positions,
               .width = context.geometry.value_width,
               .attend_tile = attend_latent_tile},
              result);
}

void attend_exact_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, int64_t part,
                       const PartSums& result) {
  attend_part(context, unit, scratch,
              {.slots = partition(part, unit.sequence->exact.token_count),
               .positions = unit.sequence->exact_positions,
               .width = context.geometry.head_width,
               .attend_tile = attend_exact_tile},
              result);
}

}  // namespace foldkv::backend::cpu
