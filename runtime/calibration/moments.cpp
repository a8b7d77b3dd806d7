#include "runtime/calibration/moments.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace foldkv {

Moments::Moments(int64_t width) : width_(width) {
  total_.sum.resize(static_cast<size_t>(width));
  total_.products.resize(static_cast<size_t>(width * width));
}

Status Moments::observe(backend::Backend& backend, const float* rows, int64_t count, RowSums& scratch) {
  while (count > 0) {
    const int64_t taken = std::min(count, kBlockRows - pending_count());
    if (taken == kBlockRows) {  // a whole block needs no copy
      FOLDKV_RETURN_IF_ERROR(fold(backend, rows, taken, scratch));
    } else {
      pending_.reserve(static_cast<size_t>(kBlockRows * width_));
      pending_.insert(pending_.end(), rows, rows + taken * width_);
    }
    if (pending_count() == kBlockRows) {
      FOLDKV_RETURN_IF_ERROR(fold(backend, pending_.data(), kBlockRows, scratch));
      pending_.clear();
    }
    rows += taken * width_;
    count -= taken;
  }
  return absl::OkStatus();
}

Status Moments::merge(backend::Backend& backend, const Moments& other, RowSums& scratch) {
  join(other.total_, ProductsAbout::kMean);
  return observe(backend, other.pending_.data(), other.pending_count(), scratch);
}

StatusOr<Covariance> Moments::covariance(backend::Backend& backend, bool centred) const {
  Moments whole(*this);
  RowSums scratch;
  FOLDKV_RETURN_IF_ERROR(whole.fold(backend, pending_.data(), pending_count(), scratch));
  Covariance result{std::move(whole.total_.sum), std::move(whole.total_.products)};
  const double count = static_cast<double>(whole.total_.count);
  for (double& number : result.mean) number /= count;
  for (double& number : result.matrix) number /= count;
  if (centred) return result;
  for (int64_t i = 0; i < width_; ++i) {
    double* const row = result.matrix.data() + i * width_;
    for (int64_t j = 0; j <= i; ++j) row[j] += result.mean[static_cast<size_t>(i)] * result.mean[static_cast<size_t>(j)];
  }
  std::fill(result.mean.begin(), result.mean.end(), 0.0);
  return result;
}

Status Moments::fold(backend::Backend& backend, const float* rows, int64_t count, RowSums& scratch) {
  if (count == 0) return absl::OkStatus();
  scratch.count = count;
  scratch.sum.assign(static_cast<size_t>(width_), 0.0);
  scratch.products.assign(static_cast<size_t>(width_ * width_), 0.0);
  FOLDKV_RETURN_IF_ERROR(backend.moments({rows, count, width_, scratch.sum.data(), scratch.products.data()}));
  join(scratch, ProductsAbout::kZero);
  return absl::OkStatus();
}

// Adds rows whose products are about zero (a block from the backend) or about their own mean (another total).
void Moments::join(const RowSums& other, ProductsAbout about) {
  if (other.count == 0) return;
  const double count = static_cast<double>(total_.count);
  const double other_count = static_cast<double>(other.count);
  std::vector<double> other_mean(static_cast<size_t>(width_));
  std::vector<double> distance(other_mean.size());  // between the two means
  for (size_t i = 0; i < other_mean.size(); ++i) {
    other_mean[i] = other.sum[i] / other_count;
    distance[i] = total_.count == 0 ? 0.0 : other_mean[i] - total_.sum[i] / count;
  }
  const double weight = count * other_count / (count + other_count);
  for (int64_t i = 0; i < width_; ++i) {
    const auto at = static_cast<size_t>(i);
    const double sum = about == ProductsAbout::kZero ? other.sum[at] : 0.0;
    const double weighted_distance = weight * distance[at];
    double* const products = total_.products.data() + i * width_;
    const double* const other_products = other.products.data() + i * width_;
    for (int64_t j = 0; j <= i; ++j) {
      products[j] += (other_products[j] - sum * other_mean[static_cast<size_t>(j)]) +
                     weighted_distance * distance[static_cast<size_t>(j)];
    }
    total_.sum[at] += other.sum[at];
  }
  total_.count += other.count;
}

}  // namespace foldkv
