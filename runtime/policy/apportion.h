#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// Whole tokens for each layer, head or group, in proportion to weights and within caps: the one routine behind every
// exact allocator (golden/ripple.json). One factor scales the weights so that the quotas, each clipped to
// [lower, upper], sum to `total`; everyone gets the floor of his quota, and what is left goes one by one to the largest
// remainders, ties to the lower index. Remainders closer than 2^-30 are equal, so that no rounding of a sum decides.
//   all weights 0           they count as equal
//   an entry of weight 0    gets more than its lower cap only when all entries with a weight are full, then equally
//   total <= sum of lower   gives the lower caps, total >= sum of upper the upper ones: compare the sum
// What holds otherwise:
//   the sum is `total`; caps are kept; no entry is a whole token or more away from its quota
//   under equal caps a larger weight never gets less
//   a larger total never takes more than one token from an entry. One it can: largest remainders are known for that
//   order of entries matters for ties only
// O(n log n). Argument errors: "weights[2]" (not finite, below 0), "lower[0]" and "upper[0]" (below 0; upper below
// lower), "lower" and "upper" (another count than weights), "total" and caps beyond 2^36, "weights" of more than
// 65,536.
[[nodiscard]] StatusOr<std::vector<int64_t>> apportion(std::span<const double> weights, std::span<const int64_t> lower,
                                                       std::span<const int64_t> upper, int64_t total);

// The same caps for everyone.
[[nodiscard]] StatusOr<std::vector<int64_t>> apportion(std::span<const double> weights, int64_t lower, int64_t upper,
                                                       int64_t total);

}  // namespace foldkv
