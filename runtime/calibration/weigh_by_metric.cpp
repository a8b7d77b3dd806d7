#include "runtime/calibration/weigh_by_metric.h"

#include <Eigen/Core>
#include <cstddef>

namespace foldkv {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Blocks = std::vector<std::vector<double>>;

Eigen::Map<const RowMatrix> view(const std::vector<double>& block, int64_t width) {
  return {block.data(), width, width};
}

}  // namespace

void weigh_covariance(const Metric& metric, std::vector<double>& covariance) {
  const int64_t step = metric.block_width;
  const int64_t width = step * static_cast<int64_t>(metric.roots.size());
  Eigen::Map<RowMatrix> matrix(covariance.data(), width, width);
  RowMatrix block(step, step);
  for (size_t i = 0; i < metric.roots.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const int64_t row = static_cast<int64_t>(i) * step;
      const int64_t column = static_cast<int64_t>(j) * step;
      block = matrix.block(row, column, step, step);
      if (i == j) block = RowMatrix(block.selfadjointView<Eigen::Lower>());
      block = view(metric.roots[i], step) * block * view(metric.roots[j], step);
      matrix.block(row, column, step, step) = block;
      if (i != j) matrix.block(column, row, step, step) = block.transpose();
    }
  }
}

std::vector<double> multiply_blocks(const Blocks& blocks, int64_t block_width, const std::vector<double>& matrix,
                                    int64_t columns) {
  std::vector<double> result(matrix.size());
  for (size_t index = 0; index < blocks.size(); ++index) {
    const int64_t first = static_cast<int64_t>(index) * block_width * columns;
    const Eigen::Map<const RowMatrix> source(matrix.data() + first, block_width, columns);
    Eigen::Map<RowMatrix>(result.data() + first, block_width, columns) = view(blocks[index], block_width) * source;
  }
  return result;
}

}  // namespace foldkv
