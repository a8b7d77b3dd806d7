#include "runtime/policy/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foldkv {
namespace {

void average(std::span<const double> in, int64_t half, std::span<double> out) {
  const int64_t tokens = std::ssize(in);
  const auto width = static_cast<double>(2 * half + 1);
  for (int64_t t = 0; t < tokens; ++t) {
    double sum = 0.0;
    const int64_t last = std::min(tokens - 1, t + half);
    for (int64_t u = std::max<int64_t>(0, t - half); u <= last; ++u) sum += in[static_cast<size_t>(u)];
    out[static_cast<size_t>(t)] = sum / width;
  }
}

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// Running maxima within blocks of one width, from the front and from the back: every window is the end of one block and
// the start of the next (van Herk).
void maximum(std::span<const double> in, int64_t half, std::span<double> out) {
  const auto tokens = in.size();
  const auto reach = static_cast<size_t>(std::min(half, std::ssize(in)));  // wider sees no more
  const size_t width = 2 * reach + 1;
  std::vector<double> front(tokens + 2 * reach, -std::numeric_limits<double>::infinity());
  std::copy(in.begin(), in.end(), front.begin() + static_cast<std::ptrdiff_t>(reach));
  std::vector<double> back = front;
  for (size_t i = 1; i < front.size(); ++i) {
    if (i % width != 0) front[i] = larger(front[i], front[i - 1]);
  }
  for (size_t i = back.size() - 1; i-- > 0;) {
    if (i % width != width - 1) back[i] = larger(back[i], back[i + 1]);
  }
  for (size_t t = 0; t < tokens; ++t) out[t] = larger(back[t], front[t + width - 1]);
}

}  // namespace

StatusOr<ScoreTable> pool_tokens(const ScoreTable& scores, Pooling pooling, int64_t width) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("scores", scores));
  if (pooling == Pooling::kNone) return scores;
  if (pooling != Pooling::kAverage && pooling != Pooling::kMaximum) {
    return argument_error("pooling", absl::StrCat("pooling: got ", static_cast<int32_t>(pooling)));
  }
  if (width < 1 || width % 2 == 0) {
    return argument_error("pool_width", absl::StrCat("pool_width: got ", width, ", expected an odd number"));
  }
  ScoreTable pooled(scores.heads, scores.tokens);
  if (scores.tokens == 0) return pooled;
  for (int64_t head = 0; head < scores.heads; ++head) {
    (pooling == Pooling::kAverage ? average : maximum)(scores.head(head), width / 2, pooled.head(head));
  }
  return pooled;
}

}  // namespace foldkv
