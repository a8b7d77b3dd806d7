#pragma once

#include <span>
#include <vector>

namespace foldkv_lab {

// The rank of each number, from 1 for the smallest; equal numbers share the mean of their ranks.
[[nodiscard]] std::vector<double> ranks_of(std::span<const double> numbers);

// Spearman's: how nearly two lists of equal length have one order. 1: the same, -1: the opposite; 0 where a list has no
// order, since all its numbers are equal.
[[nodiscard]] double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace foldkv_lab
