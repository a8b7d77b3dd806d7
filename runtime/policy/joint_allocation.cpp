#include "runtime/policy/joint_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/check_range.h"
#include "runtime/policy/selection.h"
#include "runtime/policy/token_count.h"

namespace foldkv {
namespace {

// Scores that compete beyond the floor, head by head.
struct Pool {
  std::vector<double> scores;
  std::vector<int64_t> sizes;  // [heads]
};

void add_head(std::span<const double> scores, std::span<const uint8_t> always, int64_t floor, Pool& pool) {
  std::vector<double> competing;
  for (size_t t = 0; t < scores.size(); ++t) {
    if (always.empty() || always[t] == 0) competing.push_back(scores[t]);
  }
  pool.sizes.push_back(std::ssize(competing) - floor);
  CutTaker safe(floor == 0 ? SelectionCut{HUGE_VAL, 0} : find_cut(competing, floor));
  for (const double score : competing) {
    if (!safe.takes(score)) pool.scores.push_back(score);
  }
}

// Adds to each head's count what it has of the pool's best `count`.
void count_best(const Pool& pool, int64_t count, std::vector<int64_t>& counts) {
  if (count == 0) return;
  CutTaker best(find_cut(pool.scores, count));
  size_t next = 0;
  for (size_t head = 0; head < counts.size(); ++head) {
    for (int64_t i = 0; i < pool.sizes[head]; ++i) counts[head] += best.takes(pool.scores[next++]) ? 1 : 0;
  }
}

}  // namespace

StatusOr<std::vector<int64_t>> count_joint_best(const ScoreTable& scores, std::span<const uint8_t> always,
                                                int64_t floor, int64_t total) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("scores", scores));
  FOLDKV_RETURN_IF_ERROR(check_range("floor", floor, 0, std::numeric_limits<int64_t>::max()));
  FOLDKV_RETURN_IF_ERROR(check_range("total", total, 0, std::numeric_limits<int64_t>::max()));
  Pool pool;
  for (int64_t head = 0; head < scores.heads; ++head) {
    FOLDKV_RETURN_IF_ERROR(check_scores(scores.head(head), always));
    floor = std::min(floor, count_competing(scores.tokens, always));
    add_head(scores.head(head), always, floor, pool);
  }
  std::vector<int64_t> counts(static_cast<size_t>(scores.heads), floor);
  if (counts.empty()) return counts;
  count_best(pool, std::clamp<int64_t>(total - floor * scores.heads, 0, std::ssize(pool.scores)), counts);
  return counts;
}

StatusOr<std::vector<int64_t>> ada_author_budgets(std::span<const int64_t> counts, int64_t base, double floor_share) {
  FOLDKV_ASSIGN_OR_RETURN(const Ratio share, make_ratio("floor_share", floor_share));
  FOLDKV_RETURN_IF_ERROR(check_range("base", base, 0, std::numeric_limits<int32_t>::max()));
  const auto floor = static_cast<double>(count_of(share, base));
  std::vector<int64_t> budgets;
  for (const int64_t count : counts) {
    const double quota = static_cast<double>(count) * (1.0 - floor_share) + floor;
    budgets.push_back(static_cast<int64_t>(std::nearbyint(quota)));
  }
  return budgets;
}

}  // namespace foldkv
