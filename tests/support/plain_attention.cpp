#include "tests/support/plain_attention.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace foldkv::test {

void HeadTokens::append(int64_t position, const float* key, const float* value, int64_t head_size) {
  positions.push_back(position);
  keys.insert(keys.end(), key, key + head_size);
  values.insert(values.end(), value, value + head_size);
}

std::vector<double> turned(const LayerShape& layer, const float* head, int64_t position) {
  std::vector<double> result(head, head + layer.head_size);
  const size_t pairs = layer.frequencies.size();
  const bool split = layer.pairing == FOLDKV_PAIRING_HALF_SPLIT;
  const double scale = layer.rotation_scale == 0.0 ? 1.0 : layer.rotation_scale;
  for (size_t pair = 0; pair < pairs; ++pair) {
    const size_t first = split ? pair : 2 * pair;
    const size_t second = split ? pair + pairs : 2 * pair + 1;
    const double angle = static_cast<double>(position) * layer.frequencies[pair];
    const std::complex<double> number = std::complex(result[first], result[second]) * std::polar(scale, angle);
    result[first] = number.real();
    result[second] = number.imag();
  }
  return result;
}

PlainHead::PlainHead(const LayerShape& layer, const HeadTokens& tokens) : layer_(layer), tokens_(tokens) {
  for (size_t token = 0; token < tokens.positions.size(); ++token) {
    const float* key = tokens.keys.data() + static_cast<int64_t>(token) * layer.head_size;
    const std::vector<double> row = turned(layer, key, tokens.positions[token]);
    keys_.insert(keys_.end(), row.begin(), row.end());
  }
}

double PlainHead::score(const std::vector<double>& query, int64_t token) const {
  const auto size = static_cast<double>(layer_.head_size);
  const double* key = keys_.data() + token * layer_.head_size;
  double score = 0.0;
  for (size_t i = 0; i < query.size(); ++i) score += query[i] * key[i];
  score *= layer_.attention_scale == 0.0 ? 1.0 / std::sqrt(size) : layer_.attention_scale;
  return layer_.soft_cap > 0.0 ? layer_.soft_cap * std::tanh(score / layer_.soft_cap) : score;
}

PlainRow PlainHead::attend(const float* query, int64_t position, int64_t count) const {
  const std::vector<double> q = turned(layer_, query, position);
  std::vector<double> scores(static_cast<size_t>(count), -INFINITY);
  double highest = -INFINITY;
  for (int64_t token = 0; token < count; ++token) {
    const int64_t distance = position - tokens_.positions[static_cast<size_t>(token)];
    if (layer_.window > 0 && distance >= layer_.window) continue;
    scores[static_cast<size_t>(token)] = score(q, token);
    highest = std::max(highest, scores[static_cast<size_t>(token)]);
  }
  PlainRow row;
  row.context.assign(static_cast<size_t>(layer_.head_size), 0.0);
  double sum = 0.0;
  for (const double score : scores) sum += row.weights.emplace_back(std::exp(score - highest));
  for (int64_t token = 0; token < count; ++token) {
    const double weight = row.weights[static_cast<size_t>(token)] /= sum;
    const float* value = tokens_.values.data() + token * layer_.head_size;
    for (size_t i = 0; i < row.context.size(); ++i) row.context[i] += weight * value[i];
  }
  row.log_sum_exp = highest + std::log(sum);
  return row;
}

double largest_error(const std::vector<float>& got, const std::vector<double>& expected) {
  double error = got.size() == expected.size() ? 0.0 : INFINITY;
  double size = 1e-30;
  for (size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    const double difference = std::abs(double{got[i]} - expected[i]);
    if (!(difference <= error)) error = std::isnan(difference) ? INFINITY : difference;
    size = std::max(size, std::abs(expected[i]));
  }
  return error / size;
}

double largest_error(const std::vector<float>& got, const std::vector<float>& expected) {
  return largest_error(got, std::vector<double>(expected.begin(), expected.end()));
}

double cosine(const std::vector<float>& got, const std::vector<double>& expected) {
  double product = 0.0;
  double left = 0.0;
  double right = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    product += got[i] * expected[i];
    left += double{got[i]} * got[i];
    right += expected[i] * expected[i];
  }
  return product / std::sqrt(left * right);
}

}  // namespace foldkv::test
