#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// Two-stage selection (CriticalKV, arXiv 2502.03805): the best `first` by a base score stay anyway, the rest of the
// count goes to the best by a weighted one. As scores: plus infinity for the tokens of the first stage and the weighted
// score for the others, so that every selection can follow, one over several heads too.
//   base, weighted  [T]; always as in select_tokens. `first` beyond the tokens that compete means all of them
// Ties, NaN (in either) and argument errors as in select_tokens; "weighted" for another length, "first" below 0.
[[nodiscard]] StatusOr<std::vector<double>> raise_first_stage(std::span<const double> base,
                                                              std::span<const double> weighted,
                                                              std::span<const uint8_t> always, int64_t first);

// The first stage of DefensiveKV: of the tokens that compete, best first, as many as hold less than `mass` of the sum
// of their scores; the one that reaches it is not counted, as in the authors' code. Scores 0 or more, mass 0 to 1. All
// scores 0: none. O(T log T). Argument errors: "mass", "base[3]" for a score below 0 or infinite.
[[nodiscard]] StatusOr<int64_t> count_below_mass(std::span<const double> base, std::span<const uint8_t> always,
                                                 double mass);

}  // namespace foldkv
