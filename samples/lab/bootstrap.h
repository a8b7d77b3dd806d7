#pragma once

#include <cstdint>
#include <span>

namespace foldkv_lab {

struct MeanInterval {
  double mean = 0;
  double low = 0;  // of the middle 95% of the means of resamples
  double high = 0;
};

// The mean of a sample and how far it may be trusted, without any assumption on its distribution: means of as many
// draws from the sample itself, with replacement. values: 1 or more; the same seed gives the same interval.
[[nodiscard]] MeanInterval bootstrap_mean(std::span<const double> values, int64_t resamples, uint64_t seed);

}  // namespace foldkv_lab
