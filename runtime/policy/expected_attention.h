#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/policy/score_table.h"

namespace foldkv {

// Queries to come as a normal distribution (Expected Attention, arXiv 2510.00636), of one layer's query heads.
struct QueryForecast {
  int64_t query_heads = 0;
  int64_t head_size = 0;
  std::vector<double> means;        // [query_heads][head_size]
  std::vector<double> covariances;  // [query_heads][head_size][head_size], symmetric; empty: not used
};

// The forecast at positions [first_position, first_position + count), by the average of their rotations: one matrix for
// mean and covariance, which leaves out how the mean itself turns within the range, as the authors do.
// Argument errors: "forecast" (sizes that do not agree), "rotation" (more pairs than the head has), "count" below 1.
[[nodiscard]] StatusOr<QueryForecast> rotate_forecast(const QueryForecast& forecast, const RotationRules& rotation,
                                                      int64_t first_position, int64_t count);

// Softmax over the tokens of what the forecast expects of exp(scale * query . key), for each query head:
// scale * mean . key + scale^2 / 2 * key . covariance key. [query_heads][tokens].
//   keys  [tokens][kv_heads][head_size], rotated, as the forecast
// Numeric error for a token whose number is not finite. Argument errors: "forecast", "keys", "kv_heads".
[[nodiscard]] StatusOr<ScoreTable> expected_attention(const QueryForecast& forecast, std::span<const float> keys,
                                                      int64_t kv_heads, double scale);

}  // namespace foldkv
