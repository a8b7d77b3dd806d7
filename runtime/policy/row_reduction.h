#pragma once

#include <cstdint>

#include "runtime/policy/score_table.h"
#include "runtime/policy/token_statistics.h"

namespace foldkv {

// From the attention weights of several rows to one score for each query head and token.
enum class RowReduction : int32_t {
  kSum = 1,
  kMean = 2,
  kMaximum = 3,
  // mean + gamma * population variance over the rows (CAKE, arXiv 2503.12491)
  kMeanPlusVariance = 4,
  // minus the number of rows that gave less than an equal share (Scissorhands, arXiv 2305.17118)
  kNegatedBelow = 5,
};

// [query_heads][range.count]. gamma is looked at by kMeanPlusVariance only. The variance comes from sums of squares and
// is not let below 0. Argument errors as check_columns gives them, and "row_reduction" for a value of none of the
// above.
template <typename Number>
[[nodiscard]] StatusOr<ScoreTable> reduce_rows(const TokenStatisticsOf<Number>& statistics, RowReduction reduction,
                                               double gamma, TokenRange range);

}  // namespace foldkv
