#include <algorithm>
#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/backends.h"
#include "tests/support/exact_pages.h"
#include "tests/support/random.h"

// Scores as their definition reads, in double precision, over a few exact tokens.
namespace foldkv::backend {
namespace {

using test::ExactPages;
using test::PositionPages;

constexpr int64_t kTokens = 11;
constexpr int64_t kRows = 4;
constexpr int64_t kQueryHeads = 6;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kGroup = 3;
constexpr int64_t kHeadSize = 5;
constexpr double kScale = 0.4;
constexpr double kCap = 3.0;
constexpr int64_t kWindow = 6;
constexpr int64_t kFirstPosition = 7;  // of the queries; tokens are at 0, 1 ...

struct Scores {
  double sum = 0.0, square = 0.0, maximum = 0.0, below = 0.0, entropy = 0.0;
};

class Definition {
 public:
  Definition()
      : random_(3),
        queries(random_.normals<float>(kRows * kQueryHeads * kHeadSize)),
        keys(random_.normals<float>(kTokens * kKvHeads * kHeadSize)) {
    for (int64_t row = 0; row < kRows; ++row) {
      weights.push_back(static_cast<float>(random_.uniform(0.5, 2.0)));
      thresholds.push_back(static_cast<float>(random_.uniform(0.05, 0.3)));
      for (int64_t head = 0; head < kQueryHeads; ++head) {
        double sum = 0.0;
        for (int64_t t = 0; t < kTokens; ++t) sum += visible(row, t) ? std::exp(logit(row, head, t)) : 0.0;
        log_sum_exp.push_back(static_cast<float>(std::log(sum)));
      }
    }
  }

  [[nodiscard]] static bool visible(int64_t row, int64_t t) {
    const int64_t position = kFirstPosition + row;
    return t <= position && t > position - kWindow;
  }
  [[nodiscard]] double weight(int64_t row, int64_t head, int64_t t) const {
    if (!visible(row, t)) return 0.0;
    const auto normalizer = static_cast<double>(log_sum_exp[static_cast<size_t>(row * kQueryHeads + head)]);
    return std::exp(logit(row, head, t) - normalizer);
  }
  // One row's number of a list.
  [[nodiscard]] double reduced(ScoreHeads heads, int64_t row, int64_t list, int64_t t) const {
    if (heads == ScoreHeads::kQueryHeads) return weight(row, list, t);
    const bool all = heads == ScoreHeads::kAllHeads;
    double sum = 0.0;
    double largest = 0.0;
    for (int64_t head = all ? 0 : list * kGroup; head < (all ? kQueryHeads : (list + 1) * kGroup); ++head) {
      sum += weight(row, head, t);
      largest = std::max(largest, weight(row, head, t));
    }
    if (heads == ScoreHeads::kGroupMaximum) return largest;
    return all ? sum : sum / kGroup;
  }
  [[nodiscard]] Scores scores(ScoreHeads heads, int64_t list, int64_t t) const {
    Scores scores;
    for (int64_t row = 0; row < kRows; ++row) {
      const double a = reduced(heads, row, list, t);
      scores.sum += static_cast<double>(weights[static_cast<size_t>(row)]) * a;
      scores.square += a * a;
      scores.maximum = std::max(scores.maximum, a);
      if (visible(row, t) && a < static_cast<double>(thresholds[static_cast<size_t>(row)])) scores.below += 1.0;
      scores.entropy -= a * std::log(a + 1e-10);
    }
    return scores;
  }

 private:
  [[nodiscard]] double logit(int64_t row, int64_t head, int64_t t) const {
    double sum = 0.0;
    for (int64_t i = 0; i < kHeadSize; ++i) {
      sum += static_cast<double>(queries[static_cast<size_t>((row * kQueryHeads + head) * kHeadSize + i)]) *
             static_cast<double>(keys[static_cast<size_t>((t * kKvHeads + head / kGroup) * kHeadSize + i)]);
    }
    return kCap * std::tanh(kScale * sum / kCap);
  }

  test::Random random_;

 public:
  std::vector<float> queries, keys, log_sum_exp, weights, thresholds;
};

TEST_CASE("the reference's scores are those of the definition") {
  const Definition definition;
  const ExactPages pages({4, kKvHeads * kHeadSize, NumberFormat::kF32}, kTokens, test::kPoison);
  pages.put_rows(Side::kKeys, 0, definition.keys);
  std::vector<int32_t> positions;
  for (int32_t t = 0; t < kTokens; ++t) positions.push_back(t);
  const PositionPages position_pages(positions, 3, test::kPoison);
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const test::MemoryBlock workspace(
      backend->score_workspace({kQueryHeads, kKvHeads, kHeadSize, 0, 0, 0, kRows, 1, kTokens}), test::kPoison);
  for (const ScoreHeads heads :
       {ScoreHeads::kQueryHeads, ScoreHeads::kGroupMean, ScoreHeads::kGroupMaximum, ScoreHeads::kAllHeads}) {
    CAPTURE(static_cast<int>(heads));
    ScoreRequest request;
    request.rules = {kQueryHeads, kKvHeads, kHeadSize, kScale, kCap, kWindow, {}};
    request.exact_layout = pages.layout();
    request.sequence = {pages.region(), position_pages.region(), {}, {}, 0, kRows, positions.data() + kFirstPosition};
    request.queries = definition.queries.data();
    request.log_sum_exp = definition.log_sum_exp.data();
    request.row_weights = definition.weights.data();
    request.thresholds = definition.thresholds.data();
    request.heads = heads;
    request.list_stride = kTokens;
    request.workspace = workspace.data();
    const auto size = static_cast<size_t>(request.lists() * kTokens);
    std::vector<float> sums(size), squares(size), maxima(size), below(size), entropies(size);
    request.sums = sums.data();
    request.squares = squares.data();
    request.maxima = maxima.data();
    request.below = below.data();
    request.entropies = entropies.data();
    REQUIRE(backend->score(request).ok());
    CHECK(workspace.canary_alive());
    for (int64_t list = 0; list < request.lists(); ++list) {
      for (int64_t t = 0; t < kTokens; ++t) {
        const Scores expected = definition.scores(heads, list, t);
        const auto place = static_cast<size_t>(list * kTokens + t);
        CHECK(sums[place] == doctest::Approx(expected.sum).epsilon(1e-6));
        CHECK(squares[place] == doctest::Approx(expected.square).epsilon(1e-6));
        CHECK(maxima[place] == doctest::Approx(expected.maximum).epsilon(1e-6));
        CHECK(below[place] == expected.below);
        CHECK(entropies[place] == doctest::Approx(expected.entropy).epsilon(1e-6));
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::backend
