#include "runtime/codec/correction.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <random>

namespace foldkv {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Random signs serve the range finder as well as normal numbers do, and come out equal on every platform.
std::vector<double> random_signs(int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> signs(static_cast<size_t>(count));
  for (double& sign : signs) sign = (generator() >> 63) != 0 ? 1.0 : -1.0;
  return signs;
}

RowMatrix orthonormal_columns(const Eigen::HouseholderQR<RowMatrix>& factors) {
  return factors.householderQ() * RowMatrix::Identity(factors.rows(), factors.cols());
}

// The first left singular vectors of a tall matrix Q R: Q times the eigenvectors of R R^T, which Eigen sorts rising.
RowMatrix leading_directions(const RowMatrix& matrix, int64_t count) {
  const Eigen::HouseholderQR<RowMatrix> factors(matrix);
  const RowMatrix triangle = factors.matrixQR().topRows(matrix.cols()).triangularView<Eigen::Upper>();
  const Eigen::SelfAdjointEigenSolver<RowMatrix> solver(triangle * triangle.transpose());
  return orthonormal_columns(factors) * solver.eigenvectors().rightCols(count).rowwise().reverse();
}

}  // namespace

int64_t correction_columns(const CorrectionRules& rules, int64_t width) {
  return rules.rank == 0 ? 0 : std::min<int64_t>(width, int64_t{rules.rank} + rules.oversample);
}

StatusOr<std::vector<double>> find_correction_basis(const CorrectionRules& rules, int64_t width,
                                                    const ResidualSketch& residual_sketch) {
  const int64_t columns = correction_columns(rules, width);
  if (rules.rank < 1 || rules.rank > width) {
    return argument_error("correction.rank", absl::StrCat("is ", rules.rank, ", expected 1 to ", width));
  }
  std::vector<double> test = random_signs(width * columns, rules.seed);
  std::vector<double> sketch(test.size());
  FOLDKV_RETURN_IF_ERROR(residual_sketch(test, columns, sketch));
  for (int32_t iteration = 0; iteration < rules.iterations; ++iteration) {
    const Eigen::HouseholderQR<RowMatrix> factors(Eigen::Map<const RowMatrix>(sketch.data(), width, columns));
    const RowMatrix range = orthonormal_columns(factors);
    test.assign(range.data(), range.data() + range.size());
    FOLDKV_RETURN_IF_ERROR(residual_sketch(test, columns, sketch));
  }
  const RowMatrix basis = leading_directions(Eigen::Map<const RowMatrix>(sketch.data(), width, columns), rules.rank);
  if (!basis.allFinite()) return numeric_error("the residual of the keys is not finite");
  return std::vector<double>(basis.data(), basis.data() + basis.size());
}

}  // namespace foldkv
