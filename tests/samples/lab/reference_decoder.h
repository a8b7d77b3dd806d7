#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "samples/lab/model.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab::test {

// Of one layer, for each token [kv width]; keys before rotation.
struct ReferenceCache {
  std::vector<std::vector<double>> keys;
  std::vector<std::vector<double>> values;
};

// The decoder once more, as plainly as it can be written and in double precision: every token attends over a list of
// all keys and values before it.
class ReferenceDecoder {
 public:
  explicit ReferenceDecoder(const Model& model) : model_(model) {}

  // Logits of every token: [tokens][vocabulary].
  [[nodiscard]] std::vector<std::vector<double>> logits(const std::vector<Token>& tokens) const {
    std::vector<ReferenceCache> cache(model_.layers.size());
    return logits(tokens, &cache);
  }

  // The same after the tokens of the cache, one for each layer, to which these are appended.
  [[nodiscard]] std::vector<std::vector<double>> logits(const std::vector<Token>& tokens,
                                                        std::vector<ReferenceCache>* cache) const {
    std::vector<std::vector<double>> states;
    for (const Token token : tokens) {
      const float* row = model_.embedding.row(token);
      states.emplace_back(row, row + model_.shape.hidden_size);
    }
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      attention(model_.layers[i], &(*cache)[i], &states);
      for (std::vector<double>& state : states) feed_forward(model_.layers[i], &state);
    }
    std::vector<std::vector<double>> result;
    for (const std::vector<double>& state : states) {
      result.push_back(product(model_.classifier(), norm(state, model_.final_norm)));
    }
    return result;
  }

 private:
  using Vector = std::vector<double>;

  [[nodiscard]] Vector norm(const Vector& state, const std::vector<float>& gains) const {
    double squares = 0;
    for (const double x : state) squares += x * x;
    const double root = std::sqrt(squares / static_cast<double>(state.size()) + model_.shape.norm_epsilon);
    Vector result;
    for (size_t i = 0; i < state.size(); ++i) result.push_back(state[i] / root * static_cast<double>(gains[i]));
    return result;
  }

  [[nodiscard]] static Vector product(const Matrix& weight, const Vector& input) {
    Vector result;
    for (int64_t row = 0; row < weight.rows; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < weight.columns; ++i) {
        sum += static_cast<double>(weight.row(row)[i]) * input[static_cast<size_t>(i)];
      }
      result.push_back(sum);
    }
    return result;
  }

  // Turns the head that begins at `start`.
  void rotate(Vector* numbers, int64_t start, int64_t position) const {
    const int64_t pairs = static_cast<int64_t>(model_.shape.inverse_frequencies.size());
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const bool interleaved = model_.shape.pairing == Pairing::kInterleaved;
      double& a = (*numbers)[static_cast<size_t>(start + (interleaved ? 2 * pair : pair))];
      double& b = (*numbers)[static_cast<size_t>(start + (interleaved ? 2 * pair + 1 : pair + pairs))];
      const double angle = static_cast<double>(position) * model_.shape.inverse_frequencies[static_cast<size_t>(pair)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }

  // All heads of a key or query.
  [[nodiscard]] Vector rotated(Vector numbers, size_t position) const {
    for (size_t start = 0; start < numbers.size(); start += static_cast<size_t>(model_.shape.head_size)) {
      rotate(&numbers, static_cast<int64_t>(start), static_cast<int64_t>(position));
    }
    return numbers;
  }

  void attention(const ModelLayer& layer, ReferenceCache* cache, std::vector<Vector>* states) const {
    const ModelShape& shape = model_.shape;
    const size_t before = cache->keys.size();
    std::vector<Vector> queries;
    for (const Vector& state : *states) {
      Vector row = product(layer.query_key_value, norm(state, layer.attention_norm));
      for (size_t i = 0; i < layer.query_key_value_bias.size(); ++i) {
        row[i] += static_cast<double>(layer.query_key_value_bias[i]);
      }
      const auto key = row.begin() + shape.query_width();
      const auto value = key + shape.kv_width();
      queries.push_back(rotated(Vector(row.begin(), key), cache->keys.size()));
      cache->keys.emplace_back(key, value);
      cache->values.emplace_back(value, row.end());
    }
    std::vector<Vector> keys;
    for (const Vector& key : cache->keys) keys.push_back(rotated(key, keys.size()));
    for (size_t token = 0; token < states->size(); ++token) {
      Vector context;
      for (int64_t head = 0; head < shape.query_heads; ++head) {
        const Vector part = attend(queries[token], keys, cache->values, before + token + 1, head);
        context.insert(context.end(), part.begin(), part.end());
      }
      add(product(layer.attention_output, context), &(*states)[token]);
    }
  }

  // One head of a query over the first `visible` tokens.
  [[nodiscard]] Vector attend(const Vector& query, const std::vector<Vector>& keys, const std::vector<Vector>& values,
                              size_t visible, int64_t head) const {
    const ModelShape& shape = model_.shape;
    const int64_t kv_head = head / (shape.query_heads / shape.kv_heads);
    const size_t size = static_cast<size_t>(shape.head_size);
    const size_t query_start = static_cast<size_t>(head) * size;
    const size_t start = static_cast<size_t>(kv_head) * size;
    Vector weights;
    double total = 0;
    for (size_t token = 0; token < visible; ++token) {
      double score = 0;
      for (size_t i = 0; i < size; ++i) score += query[query_start + i] * keys[token][start + i];
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
      total += weights.back();
    }
    Vector context(size, 0.0);
    for (size_t token = 0; token < visible; ++token) {
      for (size_t i = 0; i < size; ++i) context[i] += weights[token] / total * values[token][start + i];
    }
    return context;
  }

  void feed_forward(const ModelLayer& layer, Vector* state) const {
    const Vector both = product(layer.gate_and_up, norm(*state, layer.feed_forward_norm));
    const size_t size = both.size() / 2;
    Vector activated;
    for (size_t i = 0; i < size; ++i) activated.push_back(both[i] / (1 + std::exp(-both[i])) * both[size + i]);
    add(product(layer.down, activated), state);
  }

  static void add(const Vector& addend, Vector* sum) {
    for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] += addend[i];
  }

  const Model& model_;
};

}  // namespace foldkv_lab::test
