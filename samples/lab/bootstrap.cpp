#include "samples/lab/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "samples/lab/uniform_random.h"

namespace foldkv_lab {
namespace {

// Of sorted numbers, between two of them by straight line.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

}  // namespace

MeanInterval bootstrap_mean(std::span<const double> values, int64_t resamples, uint64_t seed) {
  const double count = static_cast<double>(values.size());
  double total = 0;
  for (const double value : values) total += value;
  UniformRandom random(seed);
  std::vector<double> means(static_cast<size_t>(resamples));
  for (double& mean : means) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
    mean = sum / count;
  }
  std::sort(means.begin(), means.end());
  return {total / count, quantile(means, 0.025), quantile(means, 0.975)};
}

}  // namespace foldkv_lab
