#include "runtime/calibration/sample_means.h"

#include <cstddef>

namespace foldkv {

void SampleMeans::observe(const float* rows, int64_t count, bool begins) {
  if (count == 0) return;
  if (begins || samples_.empty()) samples_.push_back({0, std::vector<double>(static_cast<size_t>(width_))});
  Sample& sample = samples_.back();
  sample.count += count;
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t i = 0; i < width_; ++i) sample.sum[static_cast<size_t>(i)] += static_cast<double>(rows[row * width_ + i]);
  }
}

void SampleMeans::merge(const SampleMeans& other) {
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
}

void SampleMeans::take_out(const std::vector<double>& mean, std::vector<double>& covariance) const {
  int64_t rows = 0;
  for (const Sample& sample : samples_) rows += sample.count;
  std::vector<double> distance(static_cast<size_t>(width_));
  for (const Sample& sample : samples_) {
    const auto count = static_cast<double>(sample.count);
    for (size_t i = 0; i < distance.size(); ++i) distance[i] = sample.sum[i] / count - mean[i];
    const double weight = count / static_cast<double>(rows);
    for (size_t i = 0; i < distance.size(); ++i) {
      double* const row = covariance.data() + i * distance.size();
      for (size_t j = 0; j <= i; ++j) row[j] -= weight * distance[i] * distance[j];
    }
  }
}

}  // namespace foldkv
