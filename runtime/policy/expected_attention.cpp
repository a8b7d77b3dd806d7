#include "runtime/policy/expected_attention.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check_range.h"
#include "runtime/base/checked.h"

namespace foldkv {
namespace {

Status check_forecast(const QueryForecast& forecast) {
  const std::optional<int64_t> means = checked_multiply({forecast.query_heads, forecast.head_size});
  const std::optional<int64_t> squares =
      checked_multiply({forecast.query_heads, forecast.head_size, forecast.head_size});
  const bool agree = forecast.query_heads > 0 && forecast.head_size > 0 && means == std::ssize(forecast.means) &&
                     (forecast.covariances.empty() || squares == std::ssize(forecast.covariances));
  if (agree) return absl::OkStatus();
  return argument_error(
      "forecast", absl::StrCat("forecast: got ", forecast.means.size(), " means and ", forecast.covariances.size(),
                               " covariances for ", forecast.query_heads, " heads of ", forecast.head_size));
}

// One matrix of 2 x 2 for each pair of coordinates: (cosine, -sine; sine, cosine).
class AverageRotation {
 public:
  AverageRotation(const RotationRules& rules, int64_t first_position, int64_t count) : pairing_(rules.pairing) {
    for (const double frequency : rules.inverse_frequencies) {
      double cosine = 0.0;
      double sine = 0.0;
      for (int64_t position = first_position; position < first_position + count; ++position) {
        cosine += std::cos(static_cast<double>(position) * frequency);
        sine += std::sin(static_cast<double>(position) * frequency);
      }
      cosines_.push_back(rules.scale * cosine / static_cast<double>(count));
      sines_.push_back(rules.scale * sine / static_cast<double>(count));
    }
  }

  // Rotates a vector whose numbers lie `stride` apart.
  void rotate(double* vector, int64_t stride) const {
    const auto pairs = static_cast<int64_t>(cosines_.size());
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const bool half_split = pairing_ == Pairing::kHalfSplit;
      double& first = vector[(half_split ? pair : 2 * pair) * stride];
      double& second = vector[(half_split ? pair + pairs : 2 * pair + 1) * stride];
      const double a = first;
      const double b = second;
      first = a * cosines_[static_cast<size_t>(pair)] - b * sines_[static_cast<size_t>(pair)];
      second = a * sines_[static_cast<size_t>(pair)] + b * cosines_[static_cast<size_t>(pair)];
    }
  }

 private:
  Pairing pairing_;
  std::vector<double> cosines_, sines_;
};

double expected_logit(const double* mean, const double* covariance, const float* key, int64_t head_size, double scale) {
  double mean_product = 0.0;
  double spread = 0.0;
  for (int64_t i = 0; i < head_size; ++i) {
    mean_product += mean[i] * static_cast<double>(key[i]);
    if (covariance == nullptr) continue;
    double row = 0.0;
    for (int64_t j = 0; j < head_size; ++j) row += covariance[i * head_size + j] * static_cast<double>(key[j]);
    spread += static_cast<double>(key[i]) * row;
  }
  return scale * mean_product + 0.5 * scale * scale * spread;
}

void softmax(std::span<double> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (double& logit : logits) sum += logit = std::exp(logit - largest);
  for (double& logit : logits) logit /= sum;
}

}  // namespace

StatusOr<QueryForecast> rotate_forecast(const QueryForecast& forecast, const RotationRules& rotation,
                                        int64_t first_position, int64_t count) {
  FOLDKV_RETURN_IF_ERROR(check_forecast(forecast));
  FOLDKV_RETURN_IF_ERROR(check_range("rotation", 2 * std::ssize(rotation.inverse_frequencies), 0, forecast.head_size));
  FOLDKV_RETURN_IF_ERROR(check_range("count", count, 1, int64_t{1} << 31));
  const AverageRotation average(rotation, first_position, count);
  QueryForecast rotated = forecast;
  const int64_t size = forecast.head_size;
  for (int64_t head = 0; head < forecast.query_heads; ++head) {
    average.rotate(rotated.means.data() + head * size, 1);
    if (rotated.covariances.empty()) continue;
    double* const covariance = rotated.covariances.data() + head * size * size;
    for (int64_t column = 0; column < size; ++column) average.rotate(covariance + column, size);
    for (int64_t row = 0; row < size; ++row) average.rotate(covariance + row * size, 1);
  }
  return rotated;
}

StatusOr<ScoreTable> expected_attention(const QueryForecast& forecast, std::span<const float> keys, int64_t kv_heads,
                                        double scale) {
  FOLDKV_RETURN_IF_ERROR(check_forecast(forecast));
  if (kv_heads < 1 || forecast.query_heads % kv_heads != 0) {
    return argument_error("kv_heads",
                          absl::StrCat("kv_heads: got ", kv_heads, " for ", forecast.query_heads, " query heads"));
  }
  const int64_t size = forecast.head_size;
  if (std::ssize(keys) % (kv_heads * size) != 0) {
    return argument_error(
        "keys", absl::StrCat("keys: got ", keys.size(), " numbers, expected tokens of ", kv_heads, " heads of ", size));
  }
  ScoreTable scores(forecast.query_heads, std::ssize(keys) / (kv_heads * size));
  if (scores.tokens == 0) return scores;
  for (int64_t head = 0; head < scores.heads; ++head) {
    const double* const mean = forecast.means.data() + head * size;
    const double* const covariance =
        forecast.covariances.empty() ? nullptr : forecast.covariances.data() + head * size * size;
    const int64_t kv_head = head / (forecast.query_heads / kv_heads);
    for (int64_t t = 0; t < scores.tokens; ++t) {
      const float* const key = keys.data() + (t * kv_heads + kv_head) * size;
      const double logit = expected_logit(mean, covariance, key, size, scale);
      if (!std::isfinite(logit)) {
        return numeric_error(absl::StrCat("the expected attention to token ", t, " is not a finite number"));
      }
      scores.head(head)[static_cast<size_t>(t)] = logit;
    }
    softmax(scores.head(head));
  }
  return scores;
}

}  // namespace foldkv
