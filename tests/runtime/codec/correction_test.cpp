#include "runtime/codec/correction.h"

#include <Eigen/Dense>
#include <random>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

RowMatrix random_matrix(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  RowMatrix matrix(rows, columns);
  for (int64_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = normal(random);
  return matrix;
}

ResidualSketch sketch_of(const RowMatrix& residual) {
  return [&residual](const std::vector<double>& test, int64_t columns, std::vector<double>& sketch) -> Status {
    const Eigen::Map<const RowMatrix> omega(test.data(), residual.cols(), columns);
    const RowMatrix result = residual.transpose() * (residual * omega);
    sketch.assign(result.data(), result.data() + result.size());
    return absl::OkStatus();
  };
}

// Energy of the residual that the basis leaves.
double energy_left(const RowMatrix& residual, const std::vector<double>& basis, int64_t rank) {
  const Eigen::Map<const RowMatrix> directions(basis.data(), residual.cols(), rank);
  return (residual - residual * directions * directions.transpose()).squaredNorm();
}

TEST_CASE("a residual of low rank is found whole") {
  const RowMatrix residual = random_matrix(90, 3, 1) * random_matrix(3, 40, 2);
  const auto basis = find_correction_basis({3, 5, 1, 9}, 40, sketch_of(residual));
  REQUIRE(basis.ok());
  CHECK(energy_left(residual, *basis, 3) < 1e-16 * residual.squaredNorm());
}

TEST_CASE("columns are orthonormal and the result repeats") {
  const RowMatrix residual = random_matrix(50, 24, 3);
  const auto basis = find_correction_basis({5, 8, 2, 1}, 24, sketch_of(residual));
  const auto again = find_correction_basis({5, 8, 2, 1}, 24, sketch_of(residual));
  REQUIRE(basis.ok());
  CHECK(*basis == *again);
  const Eigen::Map<const RowMatrix> directions(basis->data(), 24, 5);
  CHECK((directions.transpose() * directions - Eigen::MatrixXd::Identity(5, 5)).norm() < 1e-12);
}

TEST_CASE("with power iterations the energy left nears the best rank-r approximation") {
  RowMatrix residual = random_matrix(200, 32, 5);
  for (int64_t column = 0; column < 32; ++column) residual.col(column) /= 1.0 + static_cast<double>(column);
  const Eigen::JacobiSVD<Eigen::MatrixXd> factors(residual);
  const double best = factors.singularValues().tail(32 - 6).squaredNorm();
  const auto basis = find_correction_basis({6, 8, 3, 11}, 32, sketch_of(residual));
  REQUIRE(basis.ok());
  CHECK(energy_left(residual, *basis, 6) <= best * (1.0 + 1e-6));
}

TEST_CASE("bad ranks and failing sketches come back as errors") {
  const RowMatrix residual = random_matrix(10, 8, 6);
  for (int32_t rank : {0, -1, 9}) {
    const auto basis = find_correction_basis({rank, 2, 1, 0}, 8, sketch_of(residual));
    REQUIRE_FALSE(basis.ok());
    CHECK(argument_of(basis.status()) == "correction.rank");
  }
  const auto failing = [](const std::vector<double>&, int64_t, std::vector<double>&) -> Status {
    return numeric_error("no");
  };
  CHECK_FALSE(find_correction_basis({2, 2, 1, 0}, 8, failing).ok());
  const auto poisoned = [](const std::vector<double>&, int64_t, std::vector<double>& sketch) -> Status {
    std::fill(sketch.begin(), sketch.end(), std::nan(""));
    return absl::OkStatus();
  };
  CHECK_FALSE(find_correction_basis({2, 2, 1, 0}, 8, poisoned).ok());
}

}  // namespace
}  // namespace foldkv
