#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/layer_shape.h"

// Attention in double precision, written down once more and plainly: no code of the library has a part in it.
namespace foldkv::test {

// Tokens of one KV head: rows [tokens][head_size], keys before rotation.
struct HeadTokens {
  std::vector<int64_t> positions;
  std::vector<float> keys;
  std::vector<float> values;

  void append(int64_t position, const float* key, const float* value, int64_t head_size);
};

// A head's numbers turned to a position.
[[nodiscard]] std::vector<double> turned(const LayerShape& layer, const float* head, int64_t position);

struct PlainRow {
  std::vector<double> context;  // [head_size]
  std::vector<double> weights;  // of every token: 0 where it is not seen
  double log_sum_exp = 0.0;
};

// Rows of query heads over the tokens of their KV head. The tokens must outlive it.
class PlainHead {
 public:
  PlainHead(const LayerShape& layer, const HeadTokens& tokens);
  // Over the first `count` tokens; the window counts from the row's position.
  [[nodiscard]] PlainRow attend(const float* query, int64_t position, int64_t count) const;

 private:
  [[nodiscard]] double score(const std::vector<double>& query, int64_t token) const;

  const LayerShape& layer_;
  const HeadTokens& tokens_;
  std::vector<double> keys_;  // turned, [tokens][head_size]
};

// max |got - expected| / max |expected|
[[nodiscard]] double largest_error(const std::vector<float>& got, const std::vector<double>& expected);
[[nodiscard]] double largest_error(const std::vector<float>& got, const std::vector<float>& expected);
[[nodiscard]] double cosine(const std::vector<float>& got, const std::vector<double>& expected);

}  // namespace foldkv::test
