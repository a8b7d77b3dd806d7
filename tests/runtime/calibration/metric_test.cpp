#include "runtime/calibration/metric.h"

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/weigh_by_metric.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int64_t kWidth = 6;

RowMatrix matrix_of(const std::vector<double>& numbers, int64_t rows) {
  return Eigen::Map<const RowMatrix>(numbers.data(), rows, static_cast<int64_t>(numbers.size()) / rows);
}
std::vector<double> numbers_of(const RowMatrix& matrix) { return {matrix.data(), matrix.data() + matrix.size()}; }

// Second moment of `count` random gradients; the upper triangle is garbage that nobody may read.
std::vector<double> random_block(test::Random& random, int64_t count) {
  const RowMatrix gradients = matrix_of(random.normals<double>(count * kWidth), count);
  RowMatrix block = gradients.transpose() * gradients / static_cast<double>(count);
  block.triangularView<Eigen::StrictlyUpper>().setConstant(1e30);
  return numbers_of(block);
}

RowMatrix symmetric(const std::vector<double>& block) {
  return matrix_of(block, kWidth).selfadjointView<Eigen::Lower>();
}

TEST_CASE("roots: their square is the block with its floor, and the inverse undoes them") {
  test::Random random(4);
  const std::vector<std::vector<double>> blocks = {random_block(random, 20), random_block(random, 3)};
  const Metric metric = make_metric(blocks, kWidth, 0.01).value();
  REQUIRE(metric.roots.size() == 2);
  for (size_t index = 0; index < 2; ++index) {
    const RowMatrix block = symmetric(blocks[index]);
    const RowMatrix root = matrix_of(metric.roots[index], kWidth);
    const RowMatrix expected = block + 0.01 * block.trace() / kWidth * RowMatrix::Identity(kWidth, kWidth);
    CHECK((root * root - expected).norm() < 1e-12 * expected.norm());
    CHECK((root - root.transpose()).norm() < 1e-12);
    CHECK((root * matrix_of(metric.inverse_roots[index], kWidth) - RowMatrix::Identity(kWidth, kWidth)).norm() < 1e-9);
  }
}

TEST_CASE("a layer that showed no cost takes the floor of the others; no cost at all is an error") {
  test::Random random(5);
  std::vector<std::vector<double>> blocks = {random_block(random, 20), std::vector<double>(kWidth * kWidth, 0.0)};
  const Metric metric = make_metric(blocks, kWidth, 0.25).value();
  const double expected = std::sqrt(0.25 * symmetric(blocks[0]).trace() / kWidth);
  CHECK((matrix_of(metric.roots[1], kWidth) - expected * RowMatrix::Identity(kWidth, kWidth)).norm() < 1e-12);
  CHECK(make_metric({blocks[1], blocks[1]}, kWidth, 0.25).status().code() == absl::StatusCode::kUnknown);
  blocks[0][0] = std::numeric_limits<double>::quiet_NaN();
  CHECK(make_metric(blocks, kWidth, 0.25).status().code() == absl::StatusCode::kUnknown);
  blocks[0][0] = std::numeric_limits<double>::infinity();
  CHECK(make_metric(blocks, kWidth, 0.25).status().code() == absl::StatusCode::kUnknown);
}

TEST_CASE("weighing multiplies block by block") {
  test::Random random(6);
  const Metric metric = make_metric({random_block(random, 20), random_block(random, 20)}, kWidth, 0.01).value();
  RowMatrix root = RowMatrix::Zero(2 * kWidth, 2 * kWidth);
  root.topLeftCorner(kWidth, kWidth) = matrix_of(metric.roots[0], kWidth);
  root.bottomRightCorner(kWidth, kWidth) = matrix_of(metric.roots[1], kWidth);
  const RowMatrix rows = matrix_of(random.normals<double>(30 * 2 * kWidth), 30);
  const RowMatrix covariance = rows.transpose() * rows;
  RowMatrix lower = covariance;
  lower.triangularView<Eigen::StrictlyUpper>().setConstant(-7.0);
  std::vector<double> weighed = numbers_of(lower);
  weigh_covariance(metric, weighed);
  CHECK((matrix_of(weighed, 2 * kWidth) - root * covariance * root).norm() < 1e-9);
  const RowMatrix basis = matrix_of(random.normals<double>(2 * kWidth * 5), 2 * kWidth);
  const std::vector<double> product = multiply_blocks(metric.roots, kWidth, numbers_of(basis), 5);
  CHECK((matrix_of(product, 2 * kWidth) - root * basis).norm() < 1e-12);
}

}  // namespace
}  // namespace foldkv
