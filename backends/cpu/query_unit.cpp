#include "backends/cpu/query_unit.h"

#include <algorithm>

namespace foldkv::backend::cpu {

int64_t largest_unit(const AttendGeometry& geometry, int64_t rows) {
  return std::min(std::max(geometry.query_heads, kUnitQueries), rows * geometry.query_heads);
}

QueryScratch QueryScratch::take(Workspace& workspace, const AttendGeometry& geometry, int64_t queries) {
  QueryScratch scratch;
  scratch.queries = workspace.take<float>(queries * geometry.head_size);
  scratch.positions = workspace.take<int32_t>(queries);
  scratch.scores = workspace.take<float>(queries * kTile);
  return scratch;
}

UnitQueries gather_queries(const AttendInputs& inputs, const QueryScratch& scratch, UnitQueries unit) {
  const AttendGeometry& geometry = inputs.geometry;
  const int32_t* positions = unit.sequence->query_positions + unit.first_row;
  unit.smallest_position = *std::min_element(positions, positions + unit.rows);
  unit.largest_position = *std::max_element(positions, positions + unit.rows);
  float* query = scratch.queries;
  int32_t* query_position = scratch.positions;
  for (int64_t head = unit.first_head; head < unit.first_head + unit.heads; ++head) {
    for (int64_t row = 0; row < unit.rows; ++row) {
      const int64_t row_of_request = unit.sequence->first_row + unit.first_row + row;
      const float* from = inputs.queries +
                          (row_of_request * geometry.query_heads + head * geometry.group) * geometry.head_size;
      query = std::copy_n(from, geometry.group * geometry.head_size, query);
      query_position = std::fill_n(query_position, geometry.group, positions[row]);
    }
  }
  return unit;
}

void score_keys(const AttendInputs& inputs, const UnitQueries& unit, const QueryScratch& scratch, int64_t head,
                const float* keys) {
  const int64_t head_size = inputs.geometry.head_size;
  const int64_t rows = unit.queries_of_head(inputs.geometry);
  inputs.engine.kernels.matrix_product({.rows = rows,
                                        .columns = kTile,
                                        .depth = head_size,
                                        .a = scratch.queries + head * rows * head_size,
                                        .a_stride = head_size,
                                        .b = keys,
                                        .b_stride = kTile,
                                        .c = scratch.scores + head * rows * kTile,
                                        .c_stride = kTile});
}

}  // namespace foldkv::backend::cpu
