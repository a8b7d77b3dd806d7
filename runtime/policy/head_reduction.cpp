#include "runtime/policy/head_reduction.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check_range.h"

namespace foldkv {
namespace {

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

void add(std::span<double> sums, std::span<const double> more) {
  for (size_t t = 0; t < sums.size(); ++t) sums[t] += more[t];
}

void raise(std::span<double> maxima, std::span<const double> more) {
  for (size_t t = 0; t < maxima.size(); ++t) maxima[t] = larger(maxima[t], more[t]);
}

}  // namespace

StatusOr<ScoreTable> reduce_heads(const ScoreTable& scores, int64_t heads, HeadReduction reduction) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("scores", scores));
  if (heads < 1 || scores.heads == 0 || scores.heads % heads != 0) {
    return argument_error("heads", absl::StrCat("heads: got ", heads, " from ", scores.heads));
  }
  if (reduction < HeadReduction::kMean || reduction > HeadReduction::kSum) {
    return argument_error("head_reduction", absl::StrCat("head_reduction: got ", static_cast<int32_t>(reduction)));
  }
  const int64_t group = scores.heads / heads;
  ScoreTable reduced(heads, scores.tokens);
  for (int64_t head = 0; head < heads; ++head) {
    const std::span<double> row = reduced.head(head);
    std::ranges::copy(scores.head(head * group), row.begin());
    for (int64_t other = 1; other < group; ++other) {
      (reduction == HeadReduction::kMaximum ? raise : add)(row, scores.head(head * group + other));
    }
    if (reduction != HeadReduction::kMean) continue;
    for (double& score : row) score /= static_cast<double>(group);
  }
  return reduced;
}

StatusOr<ScoreTable> pick_heads(const ScoreTable& scores, std::span<const int32_t> heads) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("scores", scores));
  ScoreTable picked(std::ssize(heads), scores.tokens);
  for (size_t i = 0; i < heads.size(); ++i) {
    FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat("heads[", i, "]"), heads[i], 0, scores.heads - 1));
    std::ranges::copy(scores.head(heads[i]), picked.head(static_cast<int64_t>(i)).begin());
  }
  return picked;
}

StatusOr<ScoreTable> add_layers(std::span<const ScoreTable> layers) {
  if (layers.empty()) return ScoreTable();
  ScoreTable sum(layers[0].heads, layers[0].tokens);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const std::string name = absl::StrCat("layers[", layer, "]");
    FOLDKV_RETURN_IF_ERROR(check_score_table(name, layers[layer]));
    if (layers[layer].heads != sum.heads || layers[layer].tokens != sum.tokens) {
      return argument_error(name, absl::StrCat(name, ": got ", layers[layer].heads, " x ", layers[layer].tokens,
                                               ", expected ", sum.heads, " x ", sum.tokens));
    }
    add(sum.scores, layers[layer].scores);
  }
  return sum;
}

}  // namespace foldkv
