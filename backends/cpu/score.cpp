#include "backends/cpu/score.h"

#include <algorithm>
#include <span>

#include "backends/cpu/key_tile.h"
#include "backends/cpu/query_unit.h"
#include "backends/interface/check_score.h"

namespace foldkv::backend::cpu {
namespace {

// Tiles of one KV head whose keys are held at once, so that a block of queries is gathered for all of them.
constexpr int64_t kUnitTiles = 4;

// Memory of one worker.
struct ScoreScratch {
  QueryScratch query;
  KeyScratch key;
  float* log_sum_exp = nullptr;  // [queries]
  float* keys = nullptr;         // [tiles][heads][head size][64]

  static ScoreScratch take(Workspace& workspace, const AttendGeometry& geometry, int64_t rows) {
    const int64_t queries = largest_unit(geometry, rows);
    ScoreScratch scratch;
    scratch.query = QueryScratch::take(workspace, geometry, queries);
    scratch.key = KeyScratch::take(workspace, geometry);
    scratch.log_sum_exp = workspace.take<float>(queries);
    scratch.keys = workspace.take<float>(std::max(kUnitTiles, geometry.kv_heads) * geometry.head_size * kTile);
    return scratch;
  }
};

std::span<ScoreScratch> take_workers(Workspace& workspace, const Engine& engine) {
  return {workspace.take<ScoreScratch>(engine.workers()), static_cast<size_t>(engine.workers())};
}

struct ScoreContext : AttendInputs {
  const ScoreRequest& request;
  UnitQueries all;  // rows of the request
  int64_t unit_heads = 0;
  int64_t unit_tiles = 0;
  int64_t latent_units = 0;  // of one head, or of all when they are taken together
  int64_t exact_units = 0;

  [[nodiscard]] int64_t tokens_of_unit() const { return unit_tiles * kTile; }
};

ScoreContext make_context(const Engine& engine, const ScoreRequest& request) {
  ScoreContext context = {AttendInputs::of(engine, request), request};
  const AttendSequence& view = request.sequence;
  context.all = {
      .sequence = &view, .rows = view.row_count, .first_head = view.first_head, .heads = view.kv_heads(request.rules)};
  const std::span positions(view.query_positions, static_cast<size_t>(view.row_count));
  context.all.smallest_position = *std::min_element(positions.begin(), positions.end());
  context.all.largest_position = *std::max_element(positions.begin(), positions.end());
  const bool together = request.heads == ScoreHeads::kAllHeads;
  context.unit_heads = together ? context.all.heads : 1;
  context.unit_tiles = together ? 1 : kUnitTiles;
  context.latent_units = divide_up(view.latent.token_count, context.tokens_of_unit());
  context.exact_units = divide_up(view.exact.token_count, context.tokens_of_unit());
  return context;
}

// Heads and tiles that one worker sums: nobody else adds to their numbers, so that rows come in order.
struct ScoreUnit {
  int64_t first_head = 0;
  bool latent = false;
  int64_t tile_count = 0;
  KeyTile tiles[kUnitTiles];
};

void load_keys(const ScoreContext& context, const ScoreUnit& unit, const KeyTile& tile, ScoreScratch& scratch,
               float* keys) {
  const AttendSequence& view = context.request.sequence;
  find_angles(context, tile, scratch.key);
  if (unit.latent) decode_keys(context, view.latent, tile, scratch.key);
  for (int64_t head = unit.first_head; head < unit.first_head + context.unit_heads; ++head) {
    if (unit.latent) {
      load_latent_keys(context, view, head, scratch.key, keys);
    } else {
      load_exact_keys(context, view, tile, head, scratch.key, keys);
    }
    keys += context.geometry.head_size * kTile;
  }
}

int64_t key_numbers_of_tile(const ScoreContext& context) {
  return context.unit_heads * context.geometry.head_size * kTile;
}

// The tiles that some row sees, with their keys.
ScoreUnit make_unit(const ScoreContext& context, int64_t index, ScoreScratch& scratch) {
  const AttendSequence& view = context.request.sequence;
  const int64_t head_units = context.all.heads / context.unit_heads;
  const int64_t part = index / head_units;
  ScoreUnit unit;
  unit.first_head = view.first_head + index % head_units * context.unit_heads;
  unit.latent = part < context.latent_units;
  const int64_t first = (unit.latent ? part : part - context.latent_units) * context.tokens_of_unit();
  const int64_t tokens = unit.latent ? view.latent.token_count : view.exact.token_count;
  const int64_t end = std::min(first + context.tokens_of_unit(), tokens);
  for (int64_t slot = first; slot < end; slot += kTile) {
    KeyTile& tile = unit.tiles[unit.tile_count];
    tile = key_tile(unit.latent ? view.latent_positions : view.exact_positions, slot, end);
    if (context.all.sees_none(context.rules, tile.range)) continue;
    load_keys(context, unit, tile, scratch, scratch.keys + unit.tile_count * key_numbers_of_tile(context));
    ++unit.tile_count;
  }
  return unit;
}

// In the order of queries.
void gather_log_sum_exp(const ScoreContext& context, const UnitQueries& block, float* log_sum_exp) {
  const AttendGeometry& geometry = context.geometry;
  for (int64_t head = block.first_head; head < block.first_head + block.heads; ++head) {
    for (int64_t row = 0; row < block.rows; ++row) {
      const int64_t row_of_request = block.sequence->first_row + block.first_row + row;
      log_sum_exp =
          std::copy_n(context.request.log_sum_exp + row_of_request * geometry.query_heads + head * geometry.group,
                      geometry.group, log_sum_exp);
    }
  }
}

ScoreTile::Lists lists_of(ScoreHeads heads) {
  switch (heads) {
    case ScoreHeads::kQueryHeads: return ScoreTile::Lists::kEach;
    case ScoreHeads::kGroupMean: return ScoreTile::Lists::kMean;
    case ScoreHeads::kGroupMaximum: return ScoreTile::Lists::kMaximum;
    case ScoreHeads::kAllHeads: break;
  }
  return ScoreTile::Lists::kSum;
}

// Where the results of a unit's tile begin.
int64_t place_of(const ScoreContext& context, const ScoreUnit& unit, const KeyTile& tile) {
  const ScoreRequest& request = context.request;
  const int64_t lists_of_head = request.heads == ScoreHeads::kQueryHeads ? context.geometry.group : 1;
  const int64_t list = (unit.first_head - request.sequence.first_head) * lists_of_head;
  const int64_t token = tile.slots.first + (unit.latent ? 0 : request.sequence.latent.token_count);
  return list * request.list_stride + token;
}

float* at(float* numbers, int64_t place) { return numbers == nullptr ? nullptr : numbers + place; }

void score_tile(const ScoreContext& context, const UnitQueries& block, const ScoreScratch& scratch, const KeyTile& tile,
                int64_t place) {
  const ScoreRequest& request = context.request;
  const auto of_block = [&](const float* numbers) { return numbers == nullptr ? nullptr : numbers + block.first_row; };
  context.engine.kernels.score_tile({.lists = lists_of(request.heads),
                                     .heads = block.heads,
                                     .rows = block.rows,
                                     .group = context.geometry.group,
                                     .scores = scratch.query.scores,
                                     .query_positions = scratch.query.positions,
                                     .log_sum_exp = scratch.log_sum_exp,
                                     .logits = logit_tile(context, block, tile),
                                     .row_weights = of_block(request.row_weights),
                                     .thresholds = of_block(request.thresholds),
                                     .sums = at(request.sums, place),
                                     .squares = at(request.squares, place),
                                     .maxima = at(request.maxima, place),
                                     .below = at(request.below, place),
                                     .entropies = at(request.entropies, place),
                                     .list_stride = request.list_stride});
}

void score_unit(const ScoreContext& context, int64_t index, ScoreScratch& scratch) {
  const ScoreUnit unit = make_unit(context, index, scratch);
  if (unit.tile_count == 0) return;
  const int64_t block_rows = std::max<int64_t>(1, kUnitQueries / (context.unit_heads * context.geometry.group));
  for (int64_t row = 0; row < context.all.rows; row += block_rows) {
    const UnitQueries block = gather_queries(context, scratch.query,
                                             {.sequence = context.all.sequence,
                                              .first_row = row,
                                              .rows = std::min(block_rows, context.all.rows - row),
                                              .first_head = unit.first_head,
                                              .heads = context.unit_heads});
    gather_log_sum_exp(context, block, scratch.log_sum_exp);
    for (int64_t i = 0; i < unit.tile_count; ++i) {
      const KeyTile& tile = unit.tiles[i];
      if (block.sees_none(context.rules, tile.range)) continue;
      const float* keys = scratch.keys + i * key_numbers_of_tile(context);
      for (int64_t head = 0; head < context.unit_heads; ++head) {
        score_keys(context, block, scratch.query, head, keys + head * context.geometry.head_size * kTile);
      }
      score_tile(context, block, scratch, tile, place_of(context, unit, tile));
    }
  }
}

}  // namespace

int64_t score_workspace(const Engine& engine, const AttendShape& shape) {
  const AttendGeometry geometry = AttendGeometry::of(shape);
  Workspace workspace(nullptr);
  take_workers(workspace, engine);
  for (int64_t worker = 0; worker < engine.workers(); ++worker) ScoreScratch::take(workspace, geometry, shape.rows);
  return workspace.bytes();
}

Status score(const Engine& engine, const ScoreRequest& request) {
  FOLDKV_RETURN_IF_ERROR(check_score(request));
  if (request.sequence.row_count == 0) return absl::OkStatus();
  const ScoreContext context = make_context(engine, request);
  Workspace workspace(request.workspace);
  const std::span<ScoreScratch> workers = take_workers(workspace, engine);
  for (ScoreScratch& worker : workers) {
    worker = ScoreScratch::take(workspace, context.geometry, request.sequence.row_count);
  }
  const int64_t head_units = context.all.heads / context.unit_heads;
  engine.threads.run((context.latent_units + context.exact_units) * head_units, [&](int64_t unit, int worker) {
    score_unit(context, unit, workers[static_cast<size_t>(worker)]);
  });
  return absl::OkStatus();
}

}  // namespace foldkv::backend::cpu
