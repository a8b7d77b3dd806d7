#include "runtime/policy/row_reduction.h"

#include <algorithm>

namespace foldkv {
namespace {

template <typename Number>
struct Column {
  const TokenStatisticsOf<Number>& statistics;
  size_t index;

  [[nodiscard]] double sum() const { return static_cast<double>(statistics.sums[index]); }
  [[nodiscard]] double mean() const { return sum() / static_cast<double>(statistics.rows); }
  [[nodiscard]] double variance() const {
    const double square = static_cast<double>(statistics.squares[index]) / static_cast<double>(statistics.rows);
    return std::max(0.0, square - mean() * mean());
  }
};

// `score` of every column in the range.
template <typename Number, typename Score>
ScoreTable map_columns(const TokenStatisticsOf<Number>& statistics, TokenRange range, const Score& score) {
  ScoreTable table(statistics.query_heads, range.count);
  for (int64_t head = 0; head < table.heads; ++head) {
    const std::span<double> row = table.head(head);
    for (int64_t t = 0; t < range.count; ++t) {
      row[static_cast<size_t>(t)] = score(static_cast<size_t>(head * statistics.tokens + range.first + t));
    }
  }
  return table;
}

}  // namespace

template <typename Number>
StatusOr<ScoreTable> reduce_rows(const TokenStatisticsOf<Number>& statistics, RowReduction reduction, double gamma,
                                 TokenRange range) {
  const auto column = [&](size_t index) { return Column<Number>{statistics, index}; };
  switch (reduction) {
    case RowReduction::kSum:
      FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.sums, "sums"));
      return map_columns(statistics, range, [&](size_t i) { return column(i).sum(); });
    case RowReduction::kMean:
      FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.sums, "sums"));
      return map_columns(statistics, range, [&](size_t i) { return column(i).mean(); });
    case RowReduction::kMaximum:
      FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.maxima, "maxima"));
      return map_columns(statistics, range, [&](size_t i) { return static_cast<double>(statistics.maxima[i]); });
    case RowReduction::kMeanPlusVariance:
      FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.sums, "sums"));
      FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.squares, "squares"));
      return map_columns(statistics, range, [&](size_t i) { return column(i).mean() + gamma * column(i).variance(); });
    case RowReduction::kNegatedBelow:
      FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.below, "below"));
      return map_columns(statistics, range, [&](size_t i) { return -static_cast<double>(statistics.below[i]); });
  }
  return argument_error("row_reduction", absl::StrCat("row_reduction: got ", static_cast<int32_t>(reduction)));
}

template StatusOr<ScoreTable> reduce_rows(const TokenStatisticsOf<float>&, RowReduction, double, TokenRange);
template StatusOr<ScoreTable> reduce_rows(const TokenStatisticsOf<double>&, RowReduction, double, TokenRange);

}  // namespace foldkv
