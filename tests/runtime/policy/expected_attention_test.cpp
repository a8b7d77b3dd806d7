#include "runtime/policy/expected_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

constexpr int64_t kQueryHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadSize = 6;

QueryForecast random_forecast(test::Random& random, bool with_covariance) {
  QueryForecast forecast{kQueryHeads, kHeadSize, random.normals<double>(kQueryHeads * kHeadSize, 0.7), {}};
  if (!with_covariance) return forecast;
  // The products of three random vectors with themselves.
  forecast.covariances.resize(kQueryHeads * kHeadSize * kHeadSize);
  for (int64_t head = 0; head < kQueryHeads; ++head) {
    for (int sample = 0; sample < 3; ++sample) {
      const std::vector<double> x = random.normals<double>(kHeadSize, 0.4);
      double* cell = forecast.covariances.data() + head * kHeadSize * kHeadSize;
      for (const double a : x) {
        for (const double b : x) *cell++ += a * b;
      }
    }
  }
  return forecast;
}

double product(const double* query, const float* key) {
  double sum = 0.0;
  for (int64_t i = 0; i < kHeadSize; ++i) sum += query[i] * static_cast<double>(key[i]);
  return sum;
}

const float* key_of(const std::vector<float>& keys, int64_t token, int64_t query_head) {
  return keys.data() + (token * kKvHeads + query_head / (kQueryHeads / kKvHeads)) * kHeadSize;
}

TEST_CASE("without covariance it is the attention of the mean query") {
  test::Random random(14);
  const QueryForecast forecast = random_forecast(random, false);
  const std::vector<float> keys = random.normals(9 * kKvHeads * kHeadSize);
  const ScoreTable scores = expected_attention(forecast, keys, kKvHeads, 0.3).value();
  REQUIRE(scores.heads == kQueryHeads);
  REQUIRE(scores.tokens == 9);
  for (int64_t head = 0; head < kQueryHeads; ++head) {
    const double* const mean = forecast.means.data() + head * kHeadSize;
    double sum = 0.0;
    for (int64_t t = 0; t < 9; ++t) sum += std::exp(0.3 * product(mean, key_of(keys, t, head)));
    for (int64_t t = 0; t < 9; ++t) {
      const double expected = std::exp(0.3 * product(mean, key_of(keys, t, head))) / sum;
      CHECK(std::abs(scores.head(head)[static_cast<size_t>(t)] - expected) < 1e-12);
    }
  }
}

TEST_CASE("with covariance it is what many normal queries exponentiate to on average") {
  test::Random random(15);
  // Queries mean + factor * normal, one head.
  constexpr double kScale = 0.4;
  std::vector<double> mean = random.normals<double>(kHeadSize),
                      factor = random.normals<double>(kHeadSize * kHeadSize, 0.6);
  QueryForecast forecast{1, kHeadSize, mean, std::vector<double>(kHeadSize * kHeadSize)};
  for (int64_t i = 0; i < kHeadSize; ++i) {
    for (int64_t j = 0; j < kHeadSize; ++j) {
      for (int64_t u = 0; u < kHeadSize; ++u) {
        forecast.covariances[static_cast<size_t>(i * kHeadSize + j)] +=
            factor[static_cast<size_t>(i * kHeadSize + u)] * factor[static_cast<size_t>(j * kHeadSize + u)];
      }
    }
  }
  const std::vector<float> keys = random.normals(5 * kHeadSize, 0.8);
  std::vector<double> averages(5);
  for (int sample = 0; sample < 200'000; ++sample) {
    const std::vector<double> normal = random.normals<double>(kHeadSize);
    std::vector<double> query = mean;
    for (size_t i = 0; i < kHeadSize; ++i) {
      for (size_t u = 0; u < kHeadSize; ++u) query[i] += factor[i * kHeadSize + u] * normal[u];
    }
    for (size_t t = 0; t < 5; ++t) averages[t] += std::exp(kScale * product(query.data(), keys.data() + t * kHeadSize));
  }
  double sum = 0.0;
  for (const double average : averages) sum += average;
  const ScoreTable scores = expected_attention(forecast, keys, 1, kScale).value();
  const ScoreTable plain = expected_attention({1, kHeadSize, mean, {}}, keys, 1, kScale).value();
  double largest_change = 0.0;
  for (size_t t = 0; t < 5; ++t) {
    CHECK(std::abs(scores.scores[t] - averages[t] / sum) < 0.01);
    largest_change = std::max(largest_change, std::abs(scores.scores[t] - plain.scores[t]));
  }
  CHECK(largest_change > 0.03);  // what the covariance is about is well above the noise
}

// One vector at one position, from the definition.
std::vector<double> rotated(std::vector<double> x, const RotationRules& rules, double position) {
  const size_t pairs = rules.inverse_frequencies.size();
  for (size_t pair = 0; pair < pairs; ++pair) {
    const bool half_split = rules.pairing == Pairing::kHalfSplit;
    double& a = x[half_split ? pair : 2 * pair];
    double& b = x[half_split ? pair + pairs : 2 * pair + 1];
    const double angle = position * rules.inverse_frequencies[pair];
    const double first = rules.scale * (a * std::cos(angle) - b * std::sin(angle));
    b = rules.scale * (a * std::sin(angle) + b * std::cos(angle));
    a = first;
  }
  return x;
}

TEST_CASE("the mean of a forecast is turned as the average of its positions, in both pairings") {
  test::Random random(16);
  for (const Pairing pairing : {Pairing::kHalfSplit, Pairing::kInterleaved}) {
    for (const std::vector<double>& frequencies : {std::vector<double>{1.0, 0.1, 0.02}, std::vector<double>{0.5}}) {
      const RotationRules rules{pairing, frequencies, 1.25};
      const QueryForecast forecast = random_forecast(random, true);
      const QueryForecast turned = rotate_forecast(forecast, rules, 100, 7).value();
      for (int64_t head = 0; head < kQueryHeads; ++head) {
        const auto first = forecast.means.begin() + head * kHeadSize;
        std::vector<double> expected(kHeadSize);
        for (int position = 100; position < 107; ++position) {
          const std::vector<double> at = rotated({first, first + kHeadSize}, rules, position);
          for (size_t i = 0; i < kHeadSize; ++i) expected[i] += at[i] / 7.0;
        }
        for (size_t i = 0; i < kHeadSize; ++i) {
          CHECK(std::abs(turned.means[static_cast<size_t>(head * kHeadSize) + i] - expected[i]) < 1e-12);
        }
      }
      // At one position the rotation is one matrix: the forecast of rotated queries is the rotated forecast.
      const QueryForecast single = rotate_forecast(forecast, rules, 5, 1).value();
      for (int64_t head = 0; head < kQueryHeads; ++head) {
        const auto covariance = forecast.covariances.begin() + head * kHeadSize * kHeadSize;
        std::vector<std::vector<double>> rows;
        for (int64_t row = 0; row < kHeadSize; ++row) {
          rows.push_back(rotated({covariance + row * kHeadSize, covariance + (row + 1) * kHeadSize}, rules, 5));
        }
        for (size_t column = 0; column < kHeadSize; ++column) {
          std::vector<double> vertical;
          for (const auto& row : rows) vertical.push_back(row[column]);
          vertical = rotated(vertical, rules, 5);
          for (size_t row = 0; row < kHeadSize; ++row) {
            const size_t cell = static_cast<size_t>(head * kHeadSize * kHeadSize) + row * kHeadSize + column;
            CHECK(std::abs(single.covariances[cell] - vertical[row]) < 1e-12);
          }
        }
      }
    }
  }
}

TEST_CASE("no token, one token, and equal keys") {
  test::Random random(17);
  const QueryForecast forecast = random_forecast(random, true);
  CHECK(expected_attention(forecast, {}, kKvHeads, 0.5).value().tokens == 0);
  const std::vector<float> key = random.normals(kKvHeads * kHeadSize);
  CHECK(expected_attention(forecast, key, kKvHeads, 0.5).value().scores == std::vector<double>(kQueryHeads, 1.0));
  std::vector<float> twice = key;
  twice.insert(twice.end(), key.begin(), key.end());
  CHECK(expected_attention(forecast, twice, kKvHeads, 0.5).value().scores == std::vector<double>(2 * kQueryHeads, 0.5));
}

TEST_CASE("forecast: wrong sizes are named, and numbers that are none are an error") {
  test::Random random(18);
  const QueryForecast good = random_forecast(random, true);
  std::vector<float> keys = random.normals(3 * kKvHeads * kHeadSize);
  CHECK(argument_of(expected_attention(good, keys, 3, 1.0).status()) == "kv_heads");
  CHECK(argument_of(expected_attention(good, std::span(keys).first(5), kKvHeads, 1.0).status()) == "keys");
  QueryForecast bad = good;
  bad.means.pop_back();
  CHECK(argument_of(expected_attention(bad, keys, kKvHeads, 1.0).status()) == "forecast");
  bad = good;
  bad.covariances.pop_back();
  CHECK(argument_of(rotate_forecast(bad, {}, 0, 1).status()) == "forecast");
  CHECK(argument_of(rotate_forecast(good, {Pairing::kHalfSplit, {1, 1, 1, 1}, 1.0}, 0, 1).status()) == "rotation");
  CHECK(argument_of(rotate_forecast(good, {}, 0, 0).status()) == "count");
  keys[kKvHeads * kHeadSize] = std::numeric_limits<float>::infinity();
  const Status status = expected_attention(good, keys, kKvHeads, 1.0).status();
  CHECK(status.code() == numeric_error("").code());
  CHECK(status.message().find("token 1") != std::string::npos);
}

}  // namespace
}  // namespace foldkv
