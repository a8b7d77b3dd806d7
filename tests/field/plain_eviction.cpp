#include "tests/field/plain_eviction.h"

#include <algorithm>

namespace foldkv::test::field {

std::vector<double> window_sums(const std::vector<LayerShape>& layers, const Tokens& text, int64_t count, int64_t rows,
                                size_t first, size_t last) {
  std::vector<double> sums(static_cast<size_t>(count));
  for (size_t index = first; index <= last; ++index) {
    const LayerShape& layer = layers[index];
    for (int64_t kv_head = 0; kv_head < layer.kv_heads; ++kv_head) {
      HeadTokens tokens;
      for (int64_t token = 0; token < count; ++token) {
        const int64_t at = token * layer.key_width() + kv_head * layer.head_size;
        tokens.append(token, text.key[index].data() + at, text.value[index].data() + at, layer.head_size);
      }
      const PlainHead plain(layer, tokens);
      const int64_t group = layer.query_heads / layer.kv_heads;
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (int64_t row = std::max<int64_t>(0, count - rows); row < count; ++row) {
          const float* query = text.query[index].data() + row * layer.query_width() + head * layer.head_size;
          const std::vector<double> weights = plain.attend(query, row, row + 1).weights;
          for (size_t token = 0; token < weights.size(); ++token) sums[token] += weights[token];
        }
      }
    }
  }
  return sums;
}

std::vector<int64_t> kept_plainly(const std::vector<double>& sums, const PlainEviction& ends, int64_t others) {
  const int64_t count = std::ssize(sums);
  std::vector<int64_t> kept;
  std::vector<int64_t> competing;
  std::vector<double> scores(sums.size());
  for (int64_t token = 0; token < count; ++token) {
    const auto from = sums.begin() + std::max<int64_t>(0, token - 6);
    const auto to = sums.begin() + std::min(count, token + 7);
    scores[static_cast<size_t>(token)] = *std::max_element(from, to);
    (token < ends.sinks || token >= count - ends.recent ? kept : competing).push_back(token);
  }
  std::stable_sort(competing.begin(), competing.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  competing.resize(static_cast<size_t>(std::clamp<int64_t>(others, 0, std::ssize(competing))));
  kept.insert(kept.end(), competing.begin(), competing.end());
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace foldkv::test::field
