#include "runtime/cache/query_moments.h"

#include <algorithm>

namespace foldkv {

int64_t moment_numbers(const LayerRules& layer) { return layer.query_width() * (2 + layer.head_size); }

void add_queries(const LayerRules& layer, const float* rows, int64_t count, int64_t rows_before, float* moments) {
  const int64_t size = layer.head_size;
  float* const first = moments;
  float* const sums = first + layer.query_width();
  float* const products = sums + layer.query_width();
  if (rows_before == 0 && count > 0) std::copy_n(rows, layer.query_width(), first);
  for (int64_t row = 0; row < count; ++row, rows += layer.query_width()) {
    for (int64_t head = 0; head < layer.query_heads; ++head) {
      const float* const query = rows + head * size;
      const float* const shift = first + head * size;
      float* const sum = sums + head * size;
      float* product = products + head * size * size;
      for (int64_t i = 0; i < size; ++i, product += size) {
        const float number = query[i] - shift[i];
        sum[i] += number;
        for (int64_t j = 0; j <= i; ++j) product[j] += number * (query[j] - shift[j]);
      }
    }
  }
}

QueryForecast forecast_of(const LayerRules& layer, int64_t kv_head, const float* moments, int64_t rows,
                          bool with_covariance) {
  QueryForecast forecast;
  forecast.query_heads = layer.query_heads / layer.kv_heads;
  forecast.head_size = layer.head_size;
  const int64_t size = layer.head_size;
  const double count = static_cast<double>(rows);
  for (int64_t head = kv_head * forecast.query_heads; head < (kv_head + 1) * forecast.query_heads; ++head) {
    const float* const first = moments + head * size;
    const float* const sums = first + layer.query_width();
    const float* const products = moments + 2 * layer.query_width() + head * size * size;
    for (int64_t i = 0; i < size; ++i) forecast.means.push_back(double{first[i]} + double{sums[i]} / count);
    if (!with_covariance) continue;
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        const double product = double{products[std::max(i, j) * size + std::min(i, j)]};
        forecast.covariances.push_back(product / count - double{sums[i]} / count * (double{sums[j]} / count));
      }
    }
  }
  return forecast;
}

}  // namespace foldkv
