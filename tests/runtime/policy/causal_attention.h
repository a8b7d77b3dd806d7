#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/policy/score_table.h"
#include "runtime/policy/token_statistics.h"
#include "tests/support/golden.h"

namespace foldkv::test {

// One layer's attention, straight from the definition, in double.
struct CausalAttention {
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t tokens = 0;
  std::vector<double> q;  // [tokens][query_heads][head_size]
  std::vector<double> k;  // [tokens][kv_heads][head_size]
  std::vector<double> v;  // likewise

  explicit CausalAttention(const nlohmann::json& golden)
      : query_heads(golden["query_heads"].get<int64_t>()),
        kv_heads(golden["kv_heads"].get<int64_t>()),
        head_size(golden["head_size"].get<int64_t>()),
        tokens(golden["tokens"].get<int64_t>()),
        q(numbers(golden["q"])),
        k(numbers(golden["k"])),
        v(numbers(golden["v"])) {}

  // Weights of one row: zeros beyond it.
  [[nodiscard]] std::vector<double> weights(int64_t head, int64_t row) const {
    std::vector<double> result(static_cast<size_t>(tokens));
    double sum = 0.0;
    for (int64_t t = 0; t <= row; ++t) {
      double product = 0.0;
      for (int64_t i = 0; i < head_size; ++i) {
        product += q[static_cast<size_t>((row * query_heads + head) * head_size + i)] *
                   k[static_cast<size_t>((t * kv_heads + head / (query_heads / kv_heads)) * head_size + i)];
      }
      sum += result[static_cast<size_t>(t)] = std::exp(product / std::sqrt(static_cast<double>(head_size)));
    }
    for (double& weight : result) weight /= sum;
    return result;
  }

  // Over the last `rows` rows.
  [[nodiscard]] TokenStatisticsOf<double> statistics(int64_t rows) const {
    const auto size = static_cast<size_t>(query_heads * tokens);
    const std::vector<double> zeros(size);
    TokenStatisticsOf<double> result{query_heads, kv_heads, tokens, rows, zeros, zeros, zeros, zeros, zeros};
    for (int64_t head = 0; head < query_heads; ++head) {
      for (int64_t row = tokens - rows; row < tokens; ++row) {
        const std::vector<double> a = weights(head, row);
        for (int64_t t = 0; t < tokens; ++t) {
          const auto cell = static_cast<size_t>(head * tokens + t);
          const double weight = a[static_cast<size_t>(t)];
          result.sums[cell] += weight;
          result.squares[cell] += weight * weight;
          result.maxima[cell] = std::max(result.maxima[cell], weight);
          result.below[cell] += weight < 1.0 / static_cast<double>(row + 1) ? 1.0 : 0.0;
          result.entropies[cell] -= weight * std::log(weight + 1e-10);
        }
      }
    }
    return result;
  }

  // L1 norms of the first `count` values of each KV head.
  [[nodiscard]] ScoreTable value_norms(int64_t count) const {
    ScoreTable norms(kv_heads, count);
    for (int64_t head = 0; head < kv_heads; ++head) {
      for (int64_t t = 0; t < count; ++t) {
        for (int64_t i = 0; i < head_size; ++i) {
          norms.head(head)[static_cast<size_t>(t)] +=
              std::abs(v[static_cast<size_t>((t * kv_heads + head) * head_size + i)]);
        }
      }
    }
    return norms;
  }
};

}  // namespace foldkv::test
