#pragma once

#include <cstdint>
#include <vector>

#include "backends/interface/backend.h"
#include "runtime/base/status.h"
#include "runtime/profile/calibration_content.h"

namespace foldkv {

// Number, sum and products of rows, in double precision.
struct RowSums {
  int64_t count = 0;
  std::vector<double> sum;       // [width]
  std::vector<double> products;  // [width][width], lower triangle
};

struct Covariance {
  std::vector<double> mean;    // [width]; zeros when the second moment was asked for
  std::vector<double> matrix;  // [width][width], lower triangle
};

// Working memory of Moments of at most max_width numbers a row; taken once, so that counting rows allocates nothing.
struct MomentsScratch {
  explicit MomentsScratch(int64_t max_width);

  RowSums block;
  std::vector<double> block_mean;
  std::vector<double> distance;
};

// Streaming first and second moments of one side of a layer group.
//
// Rows are summed as they are in blocks of kBlockRows; the products of a block are then taken about the block's own
// mean and joined to the total, whose products are about the total's mean (T. Chan, G. Golub, R. LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979). What is lost to cancellation is thus that
// of one block, about kBlockRows * (mean / deviation)^2 * 2^-53 of the variance (2e-8 at most for a mean of 900
// deviations), no matter how many rows follow. Blocks are counted over rows, not over calls: how rows are cut into
// calls changes no bit.
class Moments {
 public:
  static constexpr int64_t kBlockRows = 256;

  explicit Moments(int64_t width);

  [[nodiscard]] int64_t width() const { return width_; }
  [[nodiscard]] int64_t count() const { return total_.count + pending_count(); }

  // rows: [count][width], finite. scratch must be for this width or more.
  // An error of the backend leaves part of the rows counted.
  [[nodiscard]] Status observe(backend::Backend& backend, const float* rows, int64_t count, MomentsScratch& scratch);
  // Adds the rows of other, which must be of equal width.
  [[nodiscard]] Status merge(backend::Backend& backend, const Moments& other, MomentsScratch& scratch);
  // All that has been counted, and back: rows that follow change no bit. restore takes the sums of rows of this width in
  // place of all counted ones; corrupt error when they are of another width or when a whole block of them is pending.
  [[nodiscard]] MomentSums sums() const;
  [[nodiscard]] Status restore(const MomentSums& sums);
  // Of all rows, divided by their count, which must not be 0. Not centred: the second moment about zero.
  [[nodiscard]] StatusOr<Covariance> covariance(backend::Backend& backend, bool centred) const;

 private:
  enum class ProductsAbout { kZero, kMean };

  [[nodiscard]] int64_t pending_count() const { return static_cast<int64_t>(pending_.size()) / width_; }
  [[nodiscard]] Status fold(backend::Backend& backend, const float* rows, int64_t count, MomentsScratch& scratch);
  void join(const RowSums& other, ProductsAbout about, MomentsScratch& scratch);

  int64_t width_;
  RowSums total_;               // products about the mean
  std::vector<float> pending_;  // rows of a block that is not full, [fewer than kBlockRows][width]
};

}  // namespace foldkv
