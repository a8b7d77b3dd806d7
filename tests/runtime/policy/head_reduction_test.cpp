#include "runtime/policy/head_reduction.h"

#include <cmath>

#include "doctest/doctest.h"
#include "runtime/policy/pooling.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

ScoreTable four_heads() {
  ScoreTable table(4, 2);
  table.scores = {1, 8, 3, 4, -5, 6, 7, 2};
  return table;
}

std::vector<double> reduced(int64_t heads, HeadReduction reduction) {
  return reduce_heads(four_heads(), heads, reduction).value().scores;
}

TEST_CASE("neighbouring query heads share a KV head") {
  CHECK(reduced(2, HeadReduction::kMean) == std::vector<double>{2, 6, 1, 4});
  CHECK(reduced(2, HeadReduction::kMaximum) == std::vector<double>{3, 8, 7, 6});
  CHECK(reduced(2, HeadReduction::kSum) == std::vector<double>{4, 12, 2, 8});
  CHECK(reduced(1, HeadReduction::kMean) == std::vector<double>{1.5, 5});
  CHECK(reduced(1, HeadReduction::kMaximum) == std::vector<double>{7, 8});
  CHECK(reduced(4, HeadReduction::kSum) == four_heads().scores);
}

TEST_CASE("means and averages commute, maxima and averages do not") {
  test::Random random(6);
  ScoreTable scores(6, 30);
  for (double& score : scores.scores) score = random.uniform();
  const auto pool_first = [&](Pooling pooling, HeadReduction reduction) {
    return reduce_heads(pool_tokens(scores, pooling, 5).value(), 3, reduction).value();
  };
  const auto pool_last = [&](Pooling pooling, HeadReduction reduction) {
    return pool_tokens(reduce_heads(scores, 3, reduction).value(), pooling, 5).value();
  };
  const ScoreTable a = pool_first(Pooling::kAverage, HeadReduction::kMean);
  const ScoreTable b = pool_last(Pooling::kAverage, HeadReduction::kMean);
  for (size_t i = 0; i < a.scores.size(); ++i) CHECK(std::abs(a.scores[i] - b.scores[i]) < 1e-14);
  CHECK(pool_first(Pooling::kMaximum, HeadReduction::kMaximum) ==
        pool_last(Pooling::kMaximum, HeadReduction::kMaximum));
  CHECK(pool_first(Pooling::kMaximum, HeadReduction::kMean) != pool_last(Pooling::kMaximum, HeadReduction::kMean));
  CHECK(pool_first(Pooling::kAverage, HeadReduction::kMaximum) !=
        pool_last(Pooling::kAverage, HeadReduction::kMaximum));
}

TEST_CASE("a NaN stays one, whichever head it is of") {
  for (size_t head = 0; head < 4; ++head) {
    ScoreTable scores = four_heads();
    scores.scores[head * 2] = std::nan("");
    for (const HeadReduction reduction : {HeadReduction::kMean, HeadReduction::kMaximum, HeadReduction::kSum}) {
      const ScoreTable result = reduce_heads(scores, 2, reduction).value();
      CHECK(std::isnan(result.scores[head / 2 * 2]));
      CHECK_FALSE(std::isnan(result.scores[head / 2 * 2 + 1]));
    }
  }
}

TEST_CASE("some heads, and sums over layers") {
  const std::vector<int32_t> voting = {3, 0};
  CHECK(pick_heads(four_heads(), voting).value().scores == std::vector<double>{7, 2, 1, 8});
  const std::vector<ScoreTable> layers = {four_heads(), four_heads(), four_heads()};
  const ScoreTable sum = add_layers(layers).value();
  for (size_t i = 0; i < 8; ++i) CHECK(sum.scores[i] == 3.0 * four_heads().scores[i]);
  CHECK(add_layers({}).value() == ScoreTable());
}

TEST_CASE("heads that do not fit are refused by name") {
  CHECK(argument_of(reduce_heads(four_heads(), 3, HeadReduction::kMean).status()) == "heads");
  CHECK(argument_of(reduce_heads(four_heads(), 0, HeadReduction::kMean).status()) == "heads");
  CHECK(argument_of(reduce_heads(ScoreTable(), 1, HeadReduction::kMean).status()) == "heads");
  CHECK(argument_of(reduce_heads(four_heads(), 2, static_cast<HeadReduction>(4)).status()) == "head_reduction");
  const std::vector<int32_t> outside = {0, 4};
  CHECK(argument_of(pick_heads(four_heads(), outside).status()) == "heads[1]");
  const std::vector<ScoreTable> layers = {four_heads(), ScoreTable(4, 3)};
  CHECK(argument_of(add_layers(layers).status()) == "layers[1]");
}

}  // namespace
}  // namespace foldkv
