#include "runtime/policy/row_reduction.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

// Weights [heads][rows][tokens] and their statistics.
struct Rows {
  int64_t heads = 0, rows = 0, tokens = 0;
  std::vector<double> weights;

  Rows(test::Random& random, int64_t head_count, int64_t row_count, int64_t token_count)
      : heads(head_count), rows(row_count), tokens(token_count) {
    for (int64_t i = 0; i < heads * rows * tokens; ++i) weights.push_back(random.uniform());
  }

  template <typename Number>
  [[nodiscard]] TokenStatisticsOf<Number> statistics() const {
    const std::vector<Number> zeros(static_cast<size_t>(heads * tokens));
    TokenStatisticsOf<Number> result{heads, 1, tokens, rows, zeros, zeros, zeros, zeros, {}};
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto token = i % static_cast<size_t>(tokens);
      const auto cell = i / static_cast<size_t>(rows * tokens) * static_cast<size_t>(tokens) + token;
      const auto weight = static_cast<Number>(weights[i]);
      result.sums[cell] += weight;
      result.squares[cell] += weight * weight;
      result.maxima[cell] = std::max(result.maxima[cell], weight);
      result.below[cell] += weight < Number(0.5) ? Number(1) : Number(0);
    }
    return result;
  }

  [[nodiscard]] std::vector<double> column(int64_t head, int64_t token) const {
    std::vector<double> result;
    for (int64_t row = 0; row < rows; ++row) {
      result.push_back(weights[static_cast<size_t>((head * rows + row) * tokens + token)]);
    }
    return result;
  }
};

double expected_of(const std::vector<double>& column, RowReduction reduction, double gamma) {
  double sum = 0.0, maximum = 0.0, below = 0.0;
  for (const double weight : column) {
    sum += weight;
    maximum = std::max(maximum, weight);
    below += weight < 0.5 ? 1.0 : 0.0;
  }
  const auto rows = static_cast<double>(column.size());
  double variance = 0.0;
  for (const double weight : column) variance += (weight - sum / rows) * (weight - sum / rows) / rows;
  switch (reduction) {
    case RowReduction::kSum: return sum;
    case RowReduction::kMean: return sum / rows;
    case RowReduction::kMaximum: return maximum;
    case RowReduction::kMeanPlusVariance: return sum / rows + gamma * variance;
    case RowReduction::kNegatedBelow: return -below;
  }
  return std::nan("");
}

TEST_CASE("each reduction is what its name says of every column in the range") {
  test::Random random(4);
  for (int round = 0; round < 50; ++round) {
    const Rows rows(random, random.between(1, 3), random.between(1, 9), random.between(1, 20));
    const int64_t first = random.between(0, rows.tokens);
    const TokenRange range{first, random.between(0, rows.tokens - first)};
    for (const RowReduction reduction : {RowReduction::kSum, RowReduction::kMean, RowReduction::kMaximum,
                                         RowReduction::kMeanPlusVariance, RowReduction::kNegatedBelow}) {
      const ScoreTable wide = reduce_rows(rows.statistics<double>(), reduction, 3.0, range).value();
      const ScoreTable narrow = reduce_rows(rows.statistics<float>(), reduction, 3.0, range).value();
      REQUIRE(wide.heads == rows.heads);
      REQUIRE(wide.tokens == range.count);
      for (int64_t head = 0; head < rows.heads; ++head) {
        for (int64_t t = 0; t < range.count; ++t) {
          const double expected = expected_of(rows.column(head, first + t), reduction, 3.0);
          CHECK(std::abs(wide.head(head)[static_cast<size_t>(t)] - expected) < 1e-12);
          CHECK(std::abs(narrow.head(head)[static_cast<size_t>(t)] - expected) < 1e-4);
        }
      }
    }
  }
}

TEST_CASE("a variance that rounding makes negative is 0") {
  TokenStatistics statistics{1, 1, 1, 3, {0.3f}, {0.0299999f}, {}, {}, {}};
  CHECK(reduce_rows(statistics, RowReduction::kMeanPlusVariance, 200.0, {0, 1}).value().scores[0] ==
        doctest::Approx(0.1));
}

TEST_CASE("statistics that do not fit are refused by name") {
  TokenStatistics good{4, 2, 3, 5, std::vector<float>(12), {}, {}, {}, {}};
  const auto argument = [](const TokenStatistics& statistics, RowReduction reduction, TokenRange range) {
    return argument_of(reduce_rows(statistics, reduction, 1.0, range).status());
  };
  CHECK(reduce_rows(good, RowReduction::kMean, 0.0, {0, 3}).ok());
  CHECK(argument(good, RowReduction::kMaximum, {0, 3}) == "maxima");
  CHECK(argument(good, RowReduction::kMeanPlusVariance, {0, 3}) == "squares");
  CHECK(argument(good, RowReduction::kNegatedBelow, {0, 3}) == "below");
  CHECK(argument(good, static_cast<RowReduction>(6), {0, 3}) == "row_reduction");
  CHECK(argument(good, RowReduction::kSum, {1, 3}) == "range");
  CHECK(argument(good, RowReduction::kSum, {-1, 3}) == "range");
  CHECK(argument(good, RowReduction::kSum, {0, -1}) == "range");
  TokenStatistics bad = good;
  bad.kv_heads = 3;
  CHECK(argument(bad, RowReduction::kSum, {0, 3}) == "statistics");
  bad = good;
  bad.rows = 0;
  CHECK(argument(bad, RowReduction::kSum, {0, 3}) == "statistics");
  bad = good;
  bad.sums.pop_back();
  CHECK(argument(bad, RowReduction::kSum, {0, 3}) == "sums");
  bad = good;
  bad.entropies.resize(1);
  CHECK(argument(bad, RowReduction::kSum, {0, 3}) == "entropies");
}

TEST_CASE("no token is no score") {
  const TokenStatistics empty{2, 1, 0, 1, {}, {}, {}, {}, {}};
  const ScoreTable scores = reduce_rows(empty, RowReduction::kSum, 0.0, {0, 0}).value();
  CHECK(scores.heads == 2);
  CHECK(scores.scores.empty());
}

}  // namespace
}  // namespace foldkv
