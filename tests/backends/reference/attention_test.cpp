#include "backends/reference/attention.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/base/number_format.h"
#include "tests/support/number_io.h"
#include "tests/support/random.h"

namespace foldkv::backend::reference {
namespace {

struct Answer {
  std::vector<double> context;
  std::vector<double> log_sum_exp;
};

Answer attend_one(const AttentionRules& rules, const VisibleTokens& tokens, const std::vector<double>& query,
                  int32_t position) {
  std::vector<double> weights(static_cast<size_t>(tokens.count() + 1));
  std::vector<double> latent_sum(static_cast<size_t>(tokens.value_latent_width + 1));
  Answer answer{std::vector<double>(query.size(), std::nan("")),
                std::vector<double>(static_cast<size_t>(rules.query_heads), std::nan(""))};
  attend_row(rules, tokens, query.data(), position, {weights.data(), latent_sum.data()}, answer.context.data(),
             answer.log_sum_exp.data());
  return answer;
}

TEST_CASE("field report 51: a window of 8 is the query's own position and the 7 before it") {
  AttentionRules rules{1, 1, 20, 1.0, 0.0, 8, {}};
  for (int32_t count = 1; count <= 20; ++count) {
    CAPTURE(count);
    std::vector<double> keys(static_cast<size_t>(count * 20), 0.0);
    std::vector<double> values(keys.size(), 0.0);
    std::vector<int32_t> positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), 0);
    for (int32_t t = 0; t < count; ++t) values[static_cast<size_t>(t * 20 + t)] = 1.0;
    const VisibleTokens tokens{0, count, keys.data(), positions.data(), nullptr, values.data(), 0, nullptr, 0, nullptr};
    const int32_t query_position = count - 1;
    const Answer answer = attend_one(rules, tokens, std::vector<double>(20, 1.0), query_position);
    const int32_t seen = std::min(count, 8);
    for (int32_t t = 0; t < 20; ++t) {
      const bool visible = t <= query_position && t > query_position - 8;
      CHECK(answer.context[static_cast<size_t>(t)] == doctest::Approx(visible ? 1.0 / seen : 0.0));
    }
    CHECK(answer.log_sum_exp[0] == doctest::Approx(std::log(seen)));
  }
}

TEST_CASE("field report 55: no visible key gives zeros and minus infinity") {
  AttentionRules rules{2, 1, 2, 1.0, 0.0, 0, {}};
  const std::vector<double> keys = {1.0, 2.0};
  const std::vector<double> values = {3.0, 4.0};
  const int32_t position = 7;
  const VisibleTokens later{0, 1, keys.data(), &position, nullptr, values.data(), 0, nullptr, 0, nullptr};
  for (const VisibleTokens& tokens : {VisibleTokens{}, later}) {
    const Answer answer = attend_one(rules, tokens, {1.0, 1.0, 2.0, 2.0}, 6);
    CHECK(answer.context == std::vector<double>(4, 0.0));
    CHECK(answer.log_sum_exp == std::vector<double>(2, -std::numeric_limits<double>::infinity()));
  }
}

TEST_CASE("field report 21: query heads map to KV heads in blocks") {
  AttentionRules rules{6, 2, 1, 1.0, 0.0, 0, {}};
  const std::vector<double> keys = {0.5, -0.5, 0.1, 0.2};
  const std::vector<double> values = {1.0, 2.0, 1.0, 2.0};
  const std::vector<int32_t> positions = {0, 1};
  const VisibleTokens tokens{0, 2, keys.data(), positions.data(), nullptr, values.data(), 0, nullptr, 0, nullptr};
  const Answer answer = attend_one(rules, tokens, {1, 2, 3, 4, 5, 6}, 1);
  for (size_t head = 0; head < 6; ++head) CHECK(answer.context[head] == doctest::Approx(head < 3 ? 1.0 : 2.0));
}

TEST_CASE("field reports 48 and 56: the cap comes after the scale, and large scores stay finite") {
  AttentionRules rules{1, 1, 1, 0.5, 50.0, 0, {}};
  const std::vector<double> keys = {20.0, 400.0, -800.0};
  const std::vector<double> values = {1.0, 10.0, 100.0};
  const std::vector<int32_t> positions = {0, 1, 2};
  const VisibleTokens tokens{0, 3, keys.data(), positions.data(), nullptr, values.data(), 0, nullptr, 0, nullptr};
  const Answer answer = attend_one(rules, tokens, {1.0}, 2);
  const double a = std::exp(50.0 * std::tanh(10.0 / 50.0));
  const double b = std::exp(50.0 * std::tanh(200.0 / 50.0));
  const double c = std::exp(50.0 * std::tanh(-400.0 / 50.0));
  CHECK(answer.context[0] == doctest::Approx((a + 10.0 * b + 100.0 * c) / (a + b + c)));
  CHECK(answer.log_sum_exp[0] == doctest::Approx(std::log(a + b + c)));
  rules.soft_cap = 0.0;
  rules.scale = 1e4;
  const Answer uncapped = attend_one(rules, tokens, {1.0}, 2);
  CHECK(uncapped.context[0] == 10.0);
  CHECK(uncapped.log_sum_exp[0] == 4e6);
}

TEST_CASE("values summed in latent space equal values expanded one by one") {
  test::Random random(5);
  constexpr int64_t kLatents = 6;
  constexpr int64_t kExact = 3;
  constexpr int64_t kWidth = 8;  // 2 heads of 4
  constexpr int64_t kLatentWidth = 5;
  constexpr int64_t kBasisStride = 7;  // the last two columns are not stored
  AttentionRules rules{4, 2, 4, 0.7, 0.0, 0, {}};
  const auto keys = random.normals<double>((kLatents + kExact) * kWidth);
  const auto query = random.normals<double>(16);
  const auto latents = random.normals<double>(kLatents * kLatentWidth);
  const auto exact_values = random.normals<double>(kExact * kWidth);
  const auto basis = random.normals<float>(kWidth * kBasisStride);
  const auto mean = test::halves(random.normals<float>(kWidth));
  const std::vector<int32_t> positions = {0, 1, 2, 5, 8, 30, 31, 32, 33};
  const VisibleTokens compressed{kLatents,         kExact,         keys.data(),
                                 positions.data(), latents.data(), exact_values.data(),
                                 kLatentWidth,     basis.data(),   kBasisStride,
                                 mean.data()};
  std::vector<double> values;
  for (int64_t t = 0; t < kLatents; ++t) {
    for (int64_t i = 0; i < kWidth; ++i) {
      double value = static_cast<double>(f32_from_f16(mean[static_cast<size_t>(i)]));
      for (int64_t c = 0; c < kLatentWidth; ++c) {
        value += static_cast<double>(basis[static_cast<size_t>(i * kBasisStride + c)]) *
                 latents[static_cast<size_t>(t * kLatentWidth + c)];
      }
      values.push_back(value);
    }
  }
  values.insert(values.end(), exact_values.begin(), exact_values.end());
  const VisibleTokens plain{0, kLatents + kExact, keys.data(), positions.data(), nullptr, values.data(),
                            0, nullptr,           0,           nullptr};
  for (const int32_t position : {5, 32, 100}) {
    const Answer a = attend_one(rules, compressed, query, position);
    const Answer b = attend_one(rules, plain, query, position);
    for (size_t i = 0; i < a.context.size(); ++i) CHECK(a.context[i] == doctest::Approx(b.context[i]).epsilon(1e-12));
    CHECK(a.log_sum_exp == b.log_sum_exp);
  }
}

}  // namespace
}  // namespace foldkv::backend::reference
