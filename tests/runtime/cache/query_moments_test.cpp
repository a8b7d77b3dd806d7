#include "runtime/cache/query_moments.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv::test {
namespace {

LayerRules some_layer() {
  LayerRules layer;
  layer.query_heads = 6;
  layer.kv_heads = 3;
  layer.head_size = 4;
  return layer;
}

TEST_CASE("means and covariances of the queries that share a KV head, far from zero too") {
  const LayerRules layer = some_layer();
  constexpr int64_t kRows = 57;
  Random random(3);
  std::vector<float> rows = random.normals(kRows * layer.query_width());
  for (float& number : rows) number += 100.0f;
  std::vector<float> moments(static_cast<size_t>(moment_numbers(layer)));
  add_queries(layer, rows.data(), 20, 0, moments.data());
  add_queries(layer, rows.data() + 20 * layer.query_width(), kRows - 20, 20, moments.data());
  for (int64_t kv_head = 0; kv_head < 3; ++kv_head) {
    const QueryForecast forecast = forecast_of(layer, kv_head, moments.data(), kRows, true);
    REQUIRE(forecast.query_heads == 2);
    for (int64_t head = 0; head < 2; ++head) {
      const auto number = [&](int64_t row, int64_t i) {
        return static_cast<double>(rows[static_cast<size_t>(row * layer.query_width() + (kv_head * 2 + head) * 4 + i)]);
      };
      for (int64_t i = 0; i < 4; ++i) {
        double mean = 0.0;
        for (int64_t row = 0; row < kRows; ++row) mean += number(row, i) / kRows;
        CHECK(std::abs(forecast.means[static_cast<size_t>(head * 4 + i)] - mean) < 1e-4);
        for (int64_t j = 0; j < 4; ++j) {
          double mean_j = 0.0;
          double product = 0.0;
          for (int64_t row = 0; row < kRows; ++row) mean_j += number(row, j) / kRows;
          for (int64_t row = 0; row < kRows; ++row) product += (number(row, i) - mean) * (number(row, j) - mean_j) / kRows;
          CHECK(std::abs(forecast.covariances[static_cast<size_t>((head * 4 + i) * 4 + j)] - product) < 1e-4);
        }
      }
    }
    CHECK(forecast_of(layer, kv_head, moments.data(), kRows, false).covariances.empty());
  }
}

TEST_CASE("the same bits in any pieces") {
  const LayerRules layer = some_layer();
  Random random(4);
  const std::vector<float> rows = random.normals(30 * layer.query_width());
  std::vector<float> whole(static_cast<size_t>(moment_numbers(layer)));
  std::vector<float> pieces = whole;
  add_queries(layer, rows.data(), 30, 0, whole.data());
  for (int64_t row = 0; row < 30; ++row) add_queries(layer, rows.data() + row * layer.query_width(), 1, row, pieces.data());
  CHECK(whole == pieces);
}

}  // namespace
}  // namespace foldkv::test
