#include "backends/cpu/attend_unit.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/partitions.h"

namespace foldkv::backend::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void weigh_tile(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, const KeyTile& tile,
                const PartSums& result) {
  context.engine.kernels.softmax_tile({.rows = unit.count(context.geometry),
                                       .scores = scratch.query.scores,
                                       .query_positions = scratch.query.positions,
                                       .logits = logit_tile(context, unit, tile),
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
                                         .a = scratch.query.scores + weighted.first_query * kTile,
                                         .a_stride = kTile,
                                         .b = weighted.rows,
                                         .b_stride = weighted.width,
                                         .c = sums + weighted.first_query * weighted.width,
                                         .c_stride = weighted.width,
                                         .start = MatrixProduct::Start::kScaled,
                                         .row_start = scratch.factors + weighted.first_query});
}

void attend_latent_tile(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                        const KeyTile& tile, const PartSums& result) {
  const AttendGeometry& geometry = context.geometry;
  const LatentLayout& layout = *context.latent.layout;
  decode_keys(context, unit.sequence->latent, tile, scratch.key);
  for (int64_t head = 0; head < unit.heads; ++head) {
    load_latent_keys(context, *unit.sequence, unit.first_head + head, scratch.key, scratch.keys);
    score_keys(context, unit, scratch.query, head, scratch.keys);
  }
  weigh_tile(context, unit, scratch, tile, result);
  decode_latents_in_rows({.kernels = context.engine.kernels,
                          .layout = layout,
                          .side = Side::kValues,
                          .pages = unit.sequence->latent.pages,
                          .slots = tile.slots,
                          .scratch = scratch.key.latent,
                          .layer = context.latent.first_row / layout.keys.width},
                         scratch.value_latents, geometry.value_width);
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
    context.engine.kernels.to_f32(context.exact_layout.format, rows[token], geometry.head_size, row);
    std::fill(row + geometry.head_size, row + geometry.head_width, 0.0f);
  }
}

void attend_exact_tile(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                       const KeyTile& tile, const PartSums& result) {
  const AttendGeometry& geometry = context.geometry;
  for (int64_t head = 0; head < unit.heads; ++head) {
    load_exact_keys(context, *unit.sequence, tile, unit.first_head + head, scratch.key, scratch.keys);
    score_keys(context, unit, scratch.query, head, scratch.keys);
  }
  weigh_tile(context, unit, scratch, tile, result);
  const int64_t queries = unit.queries_of_head(geometry);
  for (int64_t head = 0; head < unit.heads; ++head) {
    const std::byte* rows[kTile];
    exact_head_rows(context, *unit.sequence, Side::kValues, tile, unit.first_head + head, rows);
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
  void (*attend_tile)(const AttendContext&, const UnitQueries&, UnitScratch&, const KeyTile&, const PartSums&);
};

void attend_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, const PartTiles& part,
                 const PartSums& result) {
  const int64_t queries = unit.count(context.geometry);
  std::fill_n(result.maxima, queries, kMinusInfinity);
  std::fill_n(result.weights, queries, 0.0f);
  bool begun = false;
  for (int64_t slot = part.slots.first; slot < part.slots.end; slot += kTile) {
    const KeyTile tile = key_tile(part.positions, slot, part.slots.end);
    if (unit.sees_none(context.rules, tile.range)) continue;
    if (!begun) std::fill_n(result.sums, queries * part.width, 0.0f);
    begun = true;
    find_angles(context, tile, scratch.key);
    part.attend_tile(context, unit, scratch, tile, result);
  }
}

}  // namespace

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
