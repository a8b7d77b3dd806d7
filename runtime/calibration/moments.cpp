#include "runtime/calibration/moments.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace foldkv {

MomentsScratch::MomentsScratch(int64_t max_width)
    : block_mean(static_cast<size_t>(max_width)), distance(static_cast<size_t>(max_width)) {
  block.sum.reserve(static_cast<size_t>(max_width));
  block.products.reserve(static_cast<size_t>(max_width * max_width));
}

Moments::Moments(int64_t width) : width_(width) {
  pending_.reserve(static_cast<size_t>(kBlockRows * width));
  total_.sum.resize(static_cast<size_t>(width));
  total_.products.resize(static_cast<size_t>(width * width));
}

Status Moments::observe(backend::Backend& backend, const float* rows, int64_t count, MomentsScratch& scratch) {
  while (count > 0) {
    const int64_t taken = std::min(count, kBlockRows - pending_count());
    if (taken == kBlockRows) {  // a whole block needs no copy
      FOLDKV_RETURN_IF_ERROR(fold(backend, rows, taken, scratch));
    } else {
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

Status Moments::merge(backend::Backend& backend, const Moments& other, MomentsScratch& scratch) {
  join(other.total_, ProductsAbout::kMean, scratch);
  return observe(backend, other.pending_.data(), other.pending_count(), scratch);
}

MomentSums Moments::sums() const {
  MomentSums result{total_.count, total_.sum, {}, pending_};
  result.products.reserve(static_cast<size_t>(width_ * (width_ + 1) / 2));
  for (int64_t i = 0; i < width_; ++i) {
    const double* const row = total_.products.data() + i * width_;
    result.products.insert(result.products.end(), row, row + i + 1);
  }
  return result;
}

Status Moments::restore(const MomentSums& sums) {
  if (sums.width() != width_) {
    return corrupt_error(absl::StrCat("got sums of rows of ", sums.width(), " numbers, expected ", width_));
  }
  const int64_t pending = std::ssize(sums.pending) / width_;
  if (pending >= kBlockRows) {
    return corrupt_error(absl::StrCat("got ", pending, " pending rows, expected fewer than ", kBlockRows));
  }
  total_.count = sums.count;
  total_.sum = sums.sum;
  const double* source = sums.products.data();
  for (int64_t i = 0; i < width_; source += ++i) {
    std::copy(source, source + i + 1, total_.products.begin() + i * width_);
  }
  pending_.assign(sums.pending.begin(), sums.pending.end());
  return absl::OkStatus();
}

StatusOr<Covariance> Moments::covariance(backend::Backend& backend, bool centred) const {
  Moments whole(*this);
  MomentsScratch scratch(width_);
  FOLDKV_RETURN_IF_ERROR(whole.fold(backend, pending_.data(), pending_count(), scratch));
  Covariance result{std::move(whole.total_.sum), std::move(whole.total_.products)};
  const double count = static_cast<double>(whole.total_.count);
  for (double& number : result.mean) number /= count;
  for (double& number : result.matrix) number /= count;
  if (centred) return result;
  for (int64_t i = 0; i < width_; ++i) {
    double* const row = result.matrix.data() + i * width_;
    for (int64_t j = 0; j <= i; ++j)
      row[j] += result.mean[static_cast<size_t>(i)] * result.mean[static_cast<size_t>(j)];
  }
  std::fill(result.mean.begin(), result.mean.end(), 0.0);
  return result;
}

Status Moments::fold(backend::Backend& backend, const float* rows, int64_t count, MomentsScratch& scratch) {
  if (count == 0) return absl::OkStatus();
  RowSums& block = scratch.block;
  block.count = count;
  block.sum.assign(static_cast<size_t>(width_), 0.0);
  block.products.assign(static_cast<size_t>(width_ * width_), 0.0);
  FOLDKV_RETURN_IF_ERROR(backend.moments({rows, count, width_, block.sum.data(), block.products.data()}));
  join(block, ProductsAbout::kZero, scratch);
  return absl::OkStatus();
}

// Adds rows whose products are about zero (a block from the backend) or about their own mean (another total).
void Moments::join(const RowSums& other, ProductsAbout about, MomentsScratch& scratch) {
  if (other.count == 0) return;
  const double count = static_cast<double>(total_.count);
  const double other_count = static_cast<double>(other.count);
  double* const other_mean = scratch.block_mean.data();
  double* const distance = scratch.distance.data();  // between the two means
  for (int64_t i = 0; i < width_; ++i) {
    other_mean[i] = other.sum[static_cast<size_t>(i)] / other_count;
    distance[i] = total_.count == 0 ? 0.0 : other_mean[i] - total_.sum[static_cast<size_t>(i)] / count;
  }
  const double weight = count * other_count / (count + other_count);
  for (int64_t i = 0; i < width_; ++i) {
    const double sum = about == ProductsAbout::kZero ? other.sum[static_cast<size_t>(i)] : 0.0;
    const double weighted_distance = weight * distance[i];
    double* const products = total_.products.data() + i * width_;
    const double* const other_products = other.products.data() + i * width_;
    for (int64_t j = 0; j <= i; ++j) {
      products[j] += (other_products[j] - sum * other_mean[j]) + weighted_distance * distance[j];
    }
  }
  for (size_t i = 0; i < total_.sum.size(); ++i) total_.sum[i] += other.sum[i];
  total_.count += other.count;
}

}  // namespace foldkv
