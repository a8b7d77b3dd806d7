#include "samples/lab/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace foldkv_lab {

std::vector<double> ranks_of(std::span<const double> numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  std::vector<double> ranks(numbers.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && numbers[order[end]] == numbers[order[first]]) ++end;
    // Ranks first + 1 to end.
    for (size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + 1 + end) / 2.0;
    first = end;
  }
  return ranks;
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> ranks_a = ranks_of(a);
  const std::vector<double> ranks_b = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) + 1.0) / 2.0;
  double product = 0;
  double square_a = 0;
  double square_b = 0;
  for (size_t i = 0; i < ranks_a.size(); ++i) {
    product += (ranks_a[i] - mean) * (ranks_b[i] - mean);
    square_a += (ranks_a[i] - mean) * (ranks_a[i] - mean);
    square_b += (ranks_b[i] - mean) * (ranks_b[i] - mean);
  }
  return square_a == 0 || square_b == 0 ? 0 : product / std::sqrt(square_a * square_b);
}

}  // namespace foldkv_lab
