#include "runtime/calibration/metric.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace foldkv {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double mean_eigenvalue(const std::vector<double>& block, int64_t width) {
  double trace = 0.0;
  for (int64_t i = 0; i < width; ++i) trace += block[static_cast<size_t>(i * width + i)];
  return trace / static_cast<double>(width);
}

std::vector<double> to_vector(const RowMatrix& matrix) { return {matrix.data(), matrix.data() + matrix.size()}; }

}  // namespace

StatusOr<Metric> make_metric(const std::vector<std::vector<double>>& blocks, int64_t block_width, double floor) {
  double largest_mean = 0.0;
  for (const std::vector<double>& block : blocks) largest_mean = std::max(largest_mean, mean_eigenvalue(block, block_width));
  if (!(largest_mean > 0.0) || !std::isfinite(largest_mean)) {
    return numeric_error(absl::StrCat("the gradients' mean square is ", largest_mean, " in all layers of a group, expected above 0"));
  }
  Metric metric;
  metric.block_width = block_width;
  for (const std::vector<double>& block : blocks) {
    const Eigen::Map<const RowMatrix> matrix(block.data(), block_width, block_width);
    const Eigen::SelfAdjointEigenSolver<RowMatrix> solver(matrix);
    if (solver.info() != Eigen::Success || !solver.eigenvalues().allFinite()) {
      return numeric_error(absl::StrCat("the eigenvalues of the costs of layer ", metric.roots.size(),
                                        " of a group do not converge"));
    }
    const double mean = mean_eigenvalue(block, block_width);
    const double least = floor * (mean > 0.0 ? mean : largest_mean);
    const Eigen::VectorXd roots = (solver.eigenvalues().array().max(0.0) + least).sqrt();
    const RowMatrix& directions = solver.eigenvectors();
    metric.roots.push_back(to_vector(directions * roots.asDiagonal() * directions.transpose()));
    metric.inverse_roots.push_back(to_vector(directions * roots.cwiseInverse().asDiagonal() * directions.transpose()));
  }
  return metric;
}

}  // namespace foldkv
