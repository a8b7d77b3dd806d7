// golden/selectors.json: the parts put together as the authors of each selector do.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/policy/cake_allocation.h"
#include "runtime/policy/head_reduction.h"
#include "runtime/policy/joint_allocation.h"
#include "runtime/policy/pooling.h"
#include "runtime/policy/position_selection.h"
#include "runtime/policy/row_reduction.h"
#include "runtime/policy/selection.h"
#include "runtime/policy/token_count.h"
#include "runtime/policy/value_weighting.h"
#include "tests/runtime/policy/causal_attention.h"

namespace foldkv {
namespace {

struct Selectors {
  explicit Selectors(const nlohmann::json& golden, double tolerance_of_file)
      : json(golden),
        tolerance(tolerance_of_file),
        attention(golden),
        window(golden["window"].get<int64_t>()),
        capacity(golden["capacity"].get<int64_t>()),
        prefix{0, attention.tokens - window} {}

  [[nodiscard]] std::vector<uint8_t> recent(int64_t count) const { return mark_ends(attention.tokens, 0, count); }

  void check_scores(const ScoreTable& scores, const nlohmann::json& expected) const {
    const std::vector<double> numbers = test::numbers(expected);
    REQUIRE(scores.scores.size() == numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) CHECK(std::abs(scores.scores[i] - numbers[i]) <= tolerance);
  }

  // Prefix scores with the window after them, whose own do not matter.
  void check_kept(const ScoreTable& scores, int64_t head, int64_t count, const nlohmann::json& expected) const {
    std::vector<double> all(scores.head(head).begin(), scores.head(head).end());
    all.resize(static_cast<size_t>(attention.tokens));
    CHECK(select_tokens(all, recent(window), count).value() == expected.get<std::vector<int32_t>>());
  }

  [[nodiscard]] ScoreTable snapkv(Pooling pooling, HeadReduction heads) const {
    const ScoreTable rows = reduce_rows(attention.statistics(window), RowReduction::kMean, 0.0, prefix).value();
    return reduce_heads(pool_tokens(rows, pooling, json["pool_width"].get<int64_t>()).value(), attention.kv_heads,
                        heads)
        .value();
  }

  nlohmann::json json;
  double tolerance;
  test::CausalAttention attention;
  int64_t window, capacity;
  TokenRange prefix;
};

template <typename Check>
void each_case(const Check& check) {
  const nlohmann::json file = test::read_golden("selectors");
  for (nlohmann::json golden : file["cases"]) {
    golden["pool_width"] = 5;
    check(Selectors(golden, file["tolerance"].get<double>()));
  }
}

TEST_CASE("golden/selectors.json: StreamingLLM") {
  each_case([](const Selectors& golden) {
    const std::vector<int32_t> kept = golden.json["streaming"].get<std::vector<int32_t>>();
    std::vector<double> newer(static_cast<size_t>(golden.attention.tokens));
    std::iota(newer.begin(), newer.end(), 0.0);
    CHECK(select_tokens(newer, mark_ends(golden.attention.tokens, 4, 0), golden.capacity).value() == kept);
  });
}

TEST_CASE("golden/selectors.json: H2O") {
  each_case([](const Selectors& golden) {
    const auto& json = golden.json["h2o"];
    const int64_t tokens = golden.attention.tokens;
    const ScoreTable sums =
        reduce_rows(golden.attention.statistics(tokens), RowReduction::kSum, 0.0, {0, tokens}).value();
    const ScoreTable scores = reduce_heads(sums, golden.attention.kv_heads, HeadReduction::kMean).value();
    golden.check_scores(scores, json["scores"]);
    for (int64_t head = 0; head < scores.heads; ++head) {
      CHECK(select_tokens(scores.head(head), golden.recent(json["recent"].get<int64_t>()), golden.capacity).value() ==
            json["kept"][static_cast<size_t>(head)].get<std::vector<int32_t>>());
    }
  });
}

TEST_CASE("golden/selectors.json: TOVA") {
  each_case([](const Selectors& golden) {
    const auto& json = golden.json["tova"];
    const ScoreTable row =
        reduce_rows(golden.attention.statistics(1), RowReduction::kSum, 0.0, {0, golden.attention.tokens}).value();
    const ScoreTable scores = reduce_heads(row, 1, HeadReduction::kMean).value();
    golden.check_scores(scores, json["scores"]);
    CHECK(select_tokens(scores.scores, {}, golden.capacity).value() == json["kept"].get<std::vector<int32_t>>());
  });
}

TEST_CASE("golden/selectors.json: SnapKV") {
  each_case([](const Selectors& golden) {
    for (const auto& [name, pooling] : {std::pair("avg", Pooling::kAverage), std::pair("max", Pooling::kMaximum)}) {
      const auto& json = golden.json["snapkv"][name];
      const ScoreTable scores = golden.snapkv(pooling, HeadReduction::kMean);
      golden.check_scores(scores, json["scores"]);
      for (int64_t head = 0; head < scores.heads; ++head) {
        golden.check_kept(scores, head, golden.capacity, json["kept"][static_cast<size_t>(head)]);
      }
    }
  });
}

TEST_CASE("golden/selectors.json: CAKE") {
  each_case([](const Selectors& golden) {
    const auto& json = golden.json["cake"];
    const auto statistics = golden.attention.statistics(golden.window);
    const ScoreTable rows =
        reduce_rows(statistics, RowReduction::kMeanPlusVariance, json["gamma"].get<double>(), golden.prefix).value();
    const ScoreTable pooled = pool_tokens(rows, Pooling::kAverage, 5).value();
    const ScoreTable scores = reduce_heads(pooled, golden.attention.kv_heads, HeadReduction::kMean).value();
    golden.check_scores(scores, json["scores"]);
    CHECK(std::abs(attention_entropy(statistics, golden.prefix).value() - json["entropy"].get<double>()) <=
          golden.tolerance * 100.0);
    CHECK(std::abs(temporal_variance(statistics, golden.prefix).value() - json["temporal_variance"].get<double>()) <=
          golden.tolerance);
    for (int64_t head = 0; head < scores.heads; ++head) {
      golden.check_kept(scores, head, golden.capacity, json["kept"][static_cast<size_t>(head)]);
    }
  });
}

TEST_CASE("golden/selectors.json: AdaKV") {
  each_case([](const Selectors& golden) {
    const auto& json = golden.json["adakv"];
    const ScoreTable scores = golden.snapkv(Pooling::kMaximum, HeadReduction::kMean);
    const int64_t base = golden.capacity - golden.window;
    const int64_t floor = count_of(make_ratio("floor", json["floor"].get<double>()).value(), base);
    const std::vector<int64_t> counts = count_joint_best(scores, {}, floor, base * scores.heads).value();
    for (int64_t head = 0; head < scores.heads; ++head) {
      golden.check_kept(scores, head, counts[static_cast<size_t>(head)] + golden.window,
                        json["kept"][static_cast<size_t>(head)]);
    }
  });
}

TEST_CASE("golden/selectors.json: LAVa") {
  each_case([](Selectors golden) {
    golden.json["pool_width"] = 7;
    const ScoreTable scores = weigh_by_head_maximum(golden.snapkv(Pooling::kMaximum, HeadReduction::kMaximum), 0.0,
                                                    golden.attention.value_norms(golden.prefix.count))
                                  .value();
    golden.check_scores(scores, golden.json["lava"]["scores"]);
  });
}

}  // namespace
}  // namespace foldkv
