#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// What eviction needs to know of one layer's attention weights A [query_heads][rows][tokens]: sums over the rows, which
// are the newest queries. Tokens run in the order of the cache; a token that a row does not see has weight 0 there.
// Backends count in float, tests in double. A vector that was not asked for is empty.
template <typename Number>
struct TokenStatisticsOf {
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t tokens = 0;
  int64_t rows = 0;
  // Each [query_heads][tokens].
  std::vector<Number> sums;       // of A
  std::vector<Number> squares;    // of A * A
  std::vector<Number> maxima;     // of A
  std::vector<Number> below;      // rows with A < 1 / tokens that the row sees
  std::vector<Number> entropies;  // of -A log(A + 1e-10), natural
};

using TokenStatistics = TokenStatisticsOf<float>;

// Argument errors: "statistics" for counts (heads that do not divide, no row), its vector's name for a vector that
// is neither empty nor [query_heads][tokens].
template <typename Number>
[[nodiscard]] Status check_statistics(const TokenStatisticsOf<Number>& statistics);

// Columns [first, first + count) of the statistics: the prefix before an observation window, usually.
struct TokenRange {
  int64_t first = 0;
  int64_t count = 0;
};

// check_statistics, and argument errors "range" for one outside the tokens and `needed` for a vector that is absent.
template <typename Number>
[[nodiscard]] Status check_columns(const TokenStatisticsOf<Number>& statistics, TokenRange range,
                                   const std::vector<Number>& vector, absl::string_view needed);

}  // namespace foldkv
