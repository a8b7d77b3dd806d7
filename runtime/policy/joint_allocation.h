#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/policy/score_table.h"

namespace foldkv {

// How many of the best `total` scores of all heads each head has: the heads of a layer share its budget. With a floor,
// the best `floor` of every head are safe, and what the total leaves beyond them goes to the highest scores of any head
// that are not (AdaKV, arXiv 2407.11550; LAVa, arXiv 2509.09754). With layers for heads, each with all its scores:
// how a model's budget falls on its layers (DynamicKV, arXiv 2412.14838).
//   always  [tokens], not 0: does not compete, in no head, and is not counted; empty: all compete
// Selecting that many in each head selects the same tokens. Ties go to the lower head, then to the lower token. A floor
// beyond the tokens that compete means all of them; a total below heads * floor gives the floors, a total beyond all
// scores gives all. The sum is `total` between those. Infinite scores and NaN as in select_tokens.
// Argument errors: "scores", "always", "floor" and "total" below 0.
[[nodiscard]] StatusOr<std::vector<int64_t>> count_joint_best(const ScoreTable& scores, std::span<const uint8_t> always,
                                                              int64_t floor, int64_t total);

// AdaKV as its authors round: round(count * (1 - floor_share) + floor(floor_share * base)) for counts without a floor,
// halves to the even number. base: tokens of a head on average. The sum may miss heads * base by some tokens.
// Argument errors: "floor_share" beyond 0 to 1, "base" below 0.
[[nodiscard]] StatusOr<std::vector<int64_t>> ada_author_budgets(std::span<const int64_t> counts, int64_t base,
                                                                double floor_share);

}  // namespace foldkv
