#pragma once

#include <cstdint>

#include "backends/cpu/attend_inputs.h"
#include "backends/cpu/region.h"
#include "backends/cpu/workspace.h"

// A query is a row and a query head. Queries of a unit are ordered [kv head][row][head of the group], so that those of
// one KV head, which share keys and values, are adjacent.
namespace foldkv::backend::cpu {

// Keeps the weighted sums of a unit in the second cache.
inline constexpr int64_t kUnitQueries = 128;
// Queries of one unit at most: one KV head of several rows, or all heads of few rows.
[[nodiscard]] int64_t largest_unit(const AttendGeometry& geometry, int64_t rows);

// Rows [first_row, first_row + rows) of a view and KV heads [first_head, first_head + heads) of the layer.
struct UnitQueries {
  const AttendSequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_head = 0;
  int64_t heads = 0;
  int32_t smallest_position = 0;
  int32_t largest_position = 0;

  [[nodiscard]] int64_t queries_of_head(const AttendGeometry& geometry) const { return rows * geometry.group; }
  [[nodiscard]] int64_t count(const AttendGeometry& geometry) const { return heads * queries_of_head(geometry); }
  // No key of such positions is visible to any row; every key is to every row.
  [[nodiscard]] bool sees_none(const AttentionRules& rules, const PositionRange& keys) const {
    return keys.smallest > largest_position || (rules.window > 0 && keys.largest <= smallest_position - rules.window);
  }
  [[nodiscard]] bool sees_all(const AttentionRules& rules, const PositionRange& keys) const {
    return keys.largest <= smallest_position && (rules.window == 0 || keys.smallest > largest_position - rules.window);
  }
};

struct QueryScratch {
  float* queries = nullptr;       // [queries][head size]
  int32_t* positions = nullptr;   // [queries]
  float* scores = nullptr;        // [queries][64]

  static QueryScratch take(Workspace& workspace, const AttendGeometry& geometry, int64_t queries);
};

// The unit with its range of positions. Copies its queries and their positions into the scratch memory.
UnitQueries gather_queries(const AttendInputs& inputs, const QueryScratch& scratch, UnitQueries unit);

// scratch.scores of the queries of one head of the unit against keys [head size][64].
void score_keys(const AttendInputs& inputs, const UnitQueries& unit, const QueryScratch& scratch, int64_t head,
                const float* keys);

}  // namespace foldkv::backend::cpu
