#include <algorithm>
#include <cmath>

#include "tests/runtime/cache/toy_host.h"

// Attention written apart from the library, for one query at a time, in double precision.
namespace foldkv::test {
namespace {

std::vector<double> normed(const float* head, int64_t size, const std::vector<float>& norm, double epsilon) {
  std::vector<double> result(head, head + size);
  if (norm.empty()) return result;
  double square = 0.0;
  for (double number : result) square += number * number;
  const double factor = 1.0 / std::sqrt(square / static_cast<double>(size) + epsilon);
  for (int64_t i = 0; i < size; ++i) result[static_cast<size_t>(i)] *= factor * norm[static_cast<size_t>(i)];
  return result;
}

void rotate(std::vector<double>& head, const std::optional<RotationRules>& rotation, int64_t position) {
  if (!rotation.has_value()) return;
  const size_t pairs = rotation->inverse_frequencies.size();
  for (size_t pair = 0; pair < pairs; ++pair) {
    const bool split = rotation->pairing == Pairing::kHalfSplit;
    double& a = head[split ? pair : 2 * pair];
    double& b = head[split ? pair + pairs : 2 * pair + 1];
    const double angle = static_cast<double>(position) * rotation->inverse_frequencies[pair];
    const double turned = a * std::cos(angle) - b * std::sin(angle);
    b = a * std::sin(angle) + b * std::cos(angle);
    a = turned;
  }
}

// Tokens from `start` to `position`, of those before `first` only the kept ones.
std::vector<int64_t> seen_tokens(int64_t start, int64_t first, int64_t position, const KeptByHead& kept,
                                 int64_t kv_head) {
  std::vector<int64_t> seen;
  if (kept.empty()) {
    for (int64_t token = start; token < first; ++token) seen.push_back(token);
  } else {
    for (const int32_t token : kept[static_cast<size_t>(kv_head)]) {
      if (token >= start && token < first) seen.push_back(token);
    }
  }
  for (int64_t token = std::max(first, start); token <= position; ++token) seen.push_back(token);
  return seen;
}

}  // namespace

std::vector<double> oracle_weights(const ToyHost& host, int64_t layer, const std::vector<float>& query,
                                   const std::vector<float>& key, int64_t count) {
  // Values that pick out one token each turn attention into its weights.
  const LayerRules& rules = host.model()->layer(layer);
  std::vector<double> weights(static_cast<size_t>(rules.query_heads * count * count));
  for (int64_t token = 0; token < count; token += rules.head_size) {
    std::vector<float> value(static_cast<size_t>(count * rules.key_width()));
    const int64_t picked = std::min(rules.head_size, count - token);
    for (int64_t i = 0; i < picked; ++i) {
      for (int64_t head = 0; head < rules.kv_heads; ++head) {
        value[static_cast<size_t>((token + i) * rules.key_width() + head * rules.head_size + i)] = 1.0f;
      }
    }
    const std::vector<double> output = oracle_attention(host, layer, query, key, value, 0, count);
    for (int64_t head = 0; head < rules.query_heads; ++head) {
      for (int64_t row = 0; row < count; ++row) {
        const double* from = output.data() + row * rules.query_width() + head * rules.head_size;
        std::copy_n(from, picked, weights.begin() + (head * count + row) * count + token);
      }
    }
  }
  return weights;
}

std::vector<double> oracle_attention(const ToyHost& host, int64_t layer, const std::vector<float>& query,
                                     const std::vector<float>& key, const std::vector<float>& value, int64_t first,
                                     int64_t count, const KeptByHead& kept) {
  const LayerRules& rules = host.model()->layer(layer);
  const int64_t size = rules.head_size;
  std::vector<double> output(static_cast<size_t>(count * rules.query_width()), 0.0);
  for (int64_t kv_head = 0; kv_head < rules.kv_heads; ++kv_head) {
    std::vector<std::vector<double>> keys;
    for (int64_t token = 0; token < first + count; ++token) {
      keys.push_back(normed(key.data() + token * rules.key_width() + kv_head * size, size, rules.key_norm,
                            rules.norm_epsilon));
      rotate(keys.back(), rules.rotation, token);
    }
    const int64_t group = rules.query_heads / rules.kv_heads;
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const int64_t position = first + row;
        std::vector<double> q = normed(query.data() + position * rules.query_width() + head * size, size,
                                       rules.query_norm, rules.norm_epsilon);
        rotate(q, rules.rotation, position);
        const int64_t start = rules.window > 0 ? std::max<int64_t>(0, position - rules.window + 1) : 0;
        std::vector<double> scores;
        double highest = -INFINITY;
        const std::vector<int64_t> seen = seen_tokens(start, first, position, kept, kv_head);
        for (const int64_t token : seen) {
          double score = 0.0;
          for (size_t i = 0; i < q.size(); ++i) score += q[i] * keys[static_cast<size_t>(token)][i];
          score *= rules.attention_scale;
          if (rules.soft_cap > 0) score = rules.soft_cap * std::tanh(score / rules.soft_cap);
          scores.push_back(score);
          highest = std::max(highest, score);
        }
        double sum = 0.0;
        for (double& score : scores) sum += (score = std::exp(score - highest));
        double* out = output.data() + row * rules.query_width() + head * size;
        for (size_t index = 0; index < seen.size(); ++index) {
          const float* v = value.data() + seen[index] * rules.key_width() + kv_head * size;
          for (int64_t i = 0; i < size; ++i) out[i] += scores[index] / sum * v[i];
        }
      }
    }
  }
  return output;
}

}  // namespace foldkv::test
