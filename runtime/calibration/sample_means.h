#pragma once

#include <cstdint>
#include <vector>

namespace foldkv {

// Sums of the rows of each sample: what is known of how far the means of samples lie apart.
class SampleMeans {
 public:
  explicit SampleMeans(int64_t width) : width_(width) {}

  // rows [count][width], of a sample that begins with them or goes on.
  void observe(const float* rows, int64_t count, bool begins);
  void merge(const SampleMeans& other);

  // covariance [width][width], lower triangle, about `mean` and over all rows observed here: takes out what the samples'
  // means contribute, so that the covariance of rows about the mean of their own sample remains.
  void take_out(const std::vector<double>& mean, std::vector<double>& covariance) const;

 private:
  struct Sample {
    int64_t count = 0;
    std::vector<double> sum;
  };

  int64_t width_;
  std::vector<Sample> samples_;
};

}  // namespace foldkv
