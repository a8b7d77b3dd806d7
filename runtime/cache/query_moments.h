#pragma once

#include <cstdint>
#include <span>

#include "runtime/memory/block.h"
#include "runtime/policy/expected_attention.h"

namespace foldkv {

// Running mean and covariance of a prompt's queries before rotation, for policies that forecast the queries to come. Numbers
// are differences from the first row, so that f32 is enough. For each layer over which a policy decides, after each
// other, host memory:
//
//   first row [query heads][head size] | sums, likewise | products [query heads][head size][head size], lower triangles
struct QueryMoments {
  Block memory;
  int64_t rows = 0;
};

// Numbers of one layer.
[[nodiscard]] int64_t moment_numbers(const LayerRules& layer);

// Adds rows [count][query heads][head size] to a layer's numbers, row after row; rows_before of them are in.
void add_queries(const LayerRules& layer, const float* rows, int64_t count, int64_t rows_before, float* moments);

// Of the query heads that share a KV head. rows: 1 or more.
[[nodiscard]] QueryForecast forecast_of(const LayerRules& layer, int64_t kv_head, const float* moments, int64_t rows,
                                        bool with_covariance);

}  // namespace foldkv
