#include "runtime/policy/attention_history.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

TokenStatisticsOf<double> row(std::vector<double> weights, std::vector<double> below = {}) {
  TokenStatisticsOf<double> statistics{1, 1, std::ssize(weights), 1, std::move(weights), {}, {}, std::move(below), {}};
  return statistics;
}

TEST_CASE("attention adds up and fades, and tokens that come later begin at 0") {
  ScoreTable history = extend_history(ScoreTable(), row({0.75, 0.25}), HistoryKind::kAttention, 0.5).value();
  CHECK(history.scores == std::vector<double>{0.75, 0.25});
  history = extend_history(history, row({0.5, 0.25, 0.25}), HistoryKind::kAttention, 0.5).value();
  CHECK(history.scores == std::vector<double>{0.875, 0.375, 0.25});
  history = extend_history(history, row({0, 0, 1}), HistoryKind::kAttention, 1.0).value();
  CHECK(history.scores == std::vector<double>{0.875, 0.375, 1.25});
}

TEST_CASE("rows below an equal share count against a token") {
  ScoreTable history = extend_history(ScoreTable(), row({0.9, 0.1}, {0, 1}), HistoryKind::kBelowShare, 1.0).value();
  history = extend_history(history, row({0.8, 0.1, 0.1}, {0, 1, 1}), HistoryKind::kBelowShare, 1.0).value();
  CHECK(history.scores == std::vector<double>{0, -2, -1});
}

TEST_CASE("an evicted token takes its past along") {
  ScoreTable history(2, 4);
  history.scores = {0, 1, 2, 3, 10, 11, 12, 13};
  const std::vector<std::vector<int32_t>> kept = {{0, 3}, {1, 2}};
  CHECK(compact_history(history, kept).value().scores == std::vector<double>{0, 3, 11, 12});
  CHECK(compact_history(ScoreTable(), {}).value() == ScoreTable());
}

TEST_CASE("histories that do not fit are refused by name") {
  const auto argument = [](const ScoreTable& history, double decay) {
    return argument_of(extend_history(history, row({1, 0}), HistoryKind::kAttention, decay).status());
  };
  CHECK(argument(ScoreTable(2, 2), 1.0) == "history");
  CHECK(argument(ScoreTable(1, 3), 1.0) == "history");
  CHECK(argument(ScoreTable(1, 2), 1.5) == "decay");
  CHECK(argument(ScoreTable(1, 2), std::nan("")) == "decay");
  CHECK(argument_of(extend_history(ScoreTable(), row({1, 0}), HistoryKind::kBelowShare, 1.0).status()) == "below");
  const std::vector<std::vector<int32_t>> outside = {{0, 1}, {0, 4}};
  CHECK(argument_of(compact_history(ScoreTable(2, 4), outside).status()) == "kept[1]");
  const std::vector<std::vector<int32_t>> ragged = {{0, 1}, {0}};
  CHECK(argument_of(compact_history(ScoreTable(2, 4), ragged).status()) == "kept[1]");
  CHECK(argument_of(compact_history(ScoreTable(3, 4), ragged).status()) == "kept");
}

}  // namespace
}  // namespace foldkv
