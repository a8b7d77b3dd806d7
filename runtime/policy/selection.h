#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// Which of T tokens stay, as rising indices.
//   always  [T], not 0: kept whatever its score, and its score is not looked at; empty: no token
//   count   tokens kept in all, those of `always` included. Fewer than those: just those. T or more: all
// The others compete: higher scores first, ties to the lower index. Minus infinity loses to every number and plus
// infinity wins; a NaN among those that compete is a numeric error that says which, even when all of them stay.
// O(T). Argument errors: "always" for another length, "count" below 0.
[[nodiscard]] StatusOr<std::vector<int32_t>> select_tokens(std::span<const double> scores,
                                                           std::span<const uint8_t> always, int64_t count);

// The tokens that compete: those that are not kept always.
[[nodiscard]] int64_t count_competing(int64_t tokens, std::span<const uint8_t> always);

// The best `count` among numbers without NaN are those above `value` and the first `equal` that are equal to it.
struct SelectionCut {
  double value = 0.0;
  int64_t equal = 0;
};

// count 1 to the number of scores.
[[nodiscard]] SelectionCut find_cut(std::vector<double> scores, int64_t count);

// Takes the best of a cut in order of the calls, one call for each score.
class CutTaker {
 public:
  explicit CutTaker(const SelectionCut& cut) : cut_(cut) {}

  [[nodiscard]] bool takes(double score) { return score > cut_.value || (score == cut_.value && cut_.equal-- > 0); }

 private:
  SelectionCut cut_;
};

// Numeric error for a NaN among the scores that compete; `always` as above, its length is an argument.
[[nodiscard]] Status check_scores(std::span<const double> scores, std::span<const uint8_t> always);

}  // namespace foldkv
