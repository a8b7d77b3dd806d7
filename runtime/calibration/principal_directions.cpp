#include "runtime/calibration/principal_directions.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstddef>

namespace foldkv {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

bool lower_triangle_is_finite(const std::vector<double>& matrix, int64_t width) {
  for (int64_t row = 0; row < width; ++row) {
    const double* const numbers = matrix.data() + row * width;
    if (!std::all_of(numbers, numbers + row + 1, [](double number) { return std::isfinite(number); })) return false;
  }
  return true;
}

double sign_of(const Eigen::VectorXd& direction) {
  Eigen::Index largest = 0;
  for (Eigen::Index index = 1; index < direction.size(); ++index) {
    if (std::abs(direction[index]) > std::abs(direction[largest])) largest = index;
  }
  return direction[largest] < 0.0 ? -1.0 : 1.0;
}

}  // namespace

StatusOr<PrincipalDirections> principal_directions(const std::vector<double>& covariance, int64_t width,
                                                   int64_t columns) {
  if (!lower_triangle_is_finite(covariance, width)) return numeric_error("the covariance is not finite");
  const Eigen::Map<const RowMatrix> matrix(covariance.data(), width, width);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  if (solver.info() != Eigen::Success) return numeric_error("the eigenvalues of the covariance do not converge");

  // Eigen sorts them rising. Rounding may leave those of a flat direction a little below zero.
  PrincipalDirections result;
  for (int64_t index = width - 1; index >= 0; --index) {
    result.variances.push_back(std::max(solver.eigenvalues()[index], 0.0));
  }
  result.basis.resize(static_cast<size_t>(width * columns));
  for (int64_t column = 0; column < columns; ++column) {
    const Eigen::VectorXd direction = solver.eigenvectors().col(width - 1 - column);
    const double sign = sign_of(direction);
    for (int64_t row = 0; row < width; ++row) {
      result.basis[static_cast<size_t>(row * columns + column)] = sign * direction[row];
    }
  }
  return result;
}

}  // namespace foldkv
