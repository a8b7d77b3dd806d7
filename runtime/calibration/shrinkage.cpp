#include "runtime/calibration/shrinkage.h"

#include <cstddef>

namespace foldkv {
namespace {

double trace_of(const std::vector<double>& matrix, int64_t width) {
  double trace = 0.0;
  for (int64_t i = 0; i < width; ++i) trace += matrix[static_cast<size_t>(i * width + i)];
  return trace;
}

// Of a symmetric matrix: the sum of the squares of its elements.
double trace_of_square(const std::vector<double>& matrix, int64_t width) {
  double sum = 0.0;
  for (int64_t i = 0; i < width; ++i) {
    const double* const row = matrix.data() + i * width;
    for (int64_t j = 0; j < i; ++j) sum += 2.0 * row[j] * row[j];
    sum += row[i] * row[i];
  }
  return sum;
}

}  // namespace

double oracle_shrinkage(const std::vector<double>& covariance, int64_t width, int64_t degrees_of_freedom) {
  const auto p = static_cast<double>(width);
  const auto n = static_cast<double>(degrees_of_freedom);
  const double trace = trace_of(covariance, width);
  const double square = trace_of_square(covariance, width);
  const double numerator = (1.0 - 2.0 / p) * square + trace * trace;
  const double denominator = (n + 1.0 - 2.0 / p) * (square - trace * trace / p);
  return numerator < denominator ? numerator / denominator : 1.0;
}

void shrink_covariance(std::vector<double>& covariance, int64_t width, double share) {
  const double mean_variance = trace_of(covariance, width) / static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i) {
    double* const row = covariance.data() + i * width;
    for (int64_t j = 0; j <= i; ++j) row[j] *= 1.0 - share;
    row[i] += share * mean_variance;
  }
}

}  // namespace foldkv
