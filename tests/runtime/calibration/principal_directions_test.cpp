#include "runtime/calibration/principal_directions.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/golden.h"

namespace foldkv {
namespace {

using Matrix = std::vector<double>;

// basis * diagonal * basis^T
Matrix composed(const Matrix& basis, const std::vector<double>& diagonal) {
  const size_t width = diagonal.size();
  Matrix result(width * width);
  for (size_t i = 0; i < width; ++i) {
    for (size_t j = 0; j < width; ++j) {
      for (size_t k = 0; k < width; ++k)
        result[i * width + j] += basis[i * width + k] * diagonal[k] * basis[j * width + k];
    }
  }
  return result;
}

// I - 2 u u^T for u = (1, 1, 1, 1) / 2: orthonormal, symmetric, exact.
const Matrix kReflection = {0.5, -0.5, -0.5, -0.5, -0.5, 0.5, -0.5, -0.5, -0.5, -0.5, 0.5, -0.5, -0.5, -0.5, -0.5, 0.5};

TEST_CASE("a covariance made of known directions gives them back") {
  const PrincipalDirections got = principal_directions(composed(kReflection, {1.0, 16.0, 4.0, 0.25}), 4, 3).value();
  const std::vector<double> variances = {16.0, 4.0, 1.0, 0.25};
  for (size_t index = 0; index < 4; ++index) CHECK(got.variances[index] == doctest::Approx(variances[index]));
  // Columns 1, 2 and 0 of the reflection, up to the sign: components that are equal in theory are not when rounded.
  const Matrix expected = {0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0.5, 0.5, 0.5};
  REQUIRE(got.basis.size() == expected.size());
  for (size_t column = 0; column < 3; ++column) {
    const double sign = got.basis[column] * expected[column] > 0 ? 1.0 : -1.0;
    for (size_t row = 0; row < 4; ++row) {
      CHECK(got.basis[row * 3 + column] == doctest::Approx(sign * expected[row * 3 + column]));
    }
  }
}

TEST_CASE("the component of largest magnitude is positive") {
  // Directions (0.6, -0.8) and (0.8, 0.6), whatever sign the eigensolver chose.
  const Matrix basis = {0.6, 0.8, -0.8, 0.6};
  for (double first : {9.0, 1.0}) {
    const PrincipalDirections got = principal_directions(composed(basis, {first, 4.0}), 2, 2).value();
    const size_t minus = first == 9.0 ? 0 : 1;  // column of the direction with a negative component
    CHECK(got.basis[minus] == doctest::Approx(-0.6));
    CHECK(got.basis[2 + minus] == doctest::Approx(0.8));
    CHECK(got.basis[1 - minus] == doctest::Approx(0.8));
    CHECK(got.basis[2 + 1 - minus] == doctest::Approx(0.6));
  }
  const PrincipalDirections diagonal = principal_directions({2.0, 0.0, 0.0, 5.0}, 2, 2).value();
  CHECK(diagonal.basis == Matrix{0.0, 1.0, 1.0, 0.0});
}

TEST_CASE("only the lower triangle is read") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const PrincipalDirections got = principal_directions({2.0, nan, 1.0, 2.0}, 2, 1).value();
  CHECK(got.variances[0] == doctest::Approx(3.0));
  CHECK(got.variances[1] == doctest::Approx(1.0));
  CHECK(got.basis[0] == doctest::Approx(std::sqrt(0.5)));
  CHECK(got.basis[1] == doctest::Approx(std::sqrt(0.5)));
}

TEST_CASE("variances do not fall below zero") {
  const PrincipalDirections got = principal_directions({1.0, 0.0, 0.0, -1e-17}, 2, 2).value();
  CHECK(got.variances == std::vector<double>{1.0, 0.0});
  CHECK(principal_directions({0.0}, 1, 1).value().basis == Matrix{1.0});
}

TEST_CASE("a matrix that is not finite is refused") {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK(principal_directions({1.0, 0.0, bad, 1.0}, 2, 1).status().code() == absl::StatusCode::kUnknown);
    CHECK(principal_directions({1.0, 0.0, 0.0, bad}, 2, 1).status().code() == absl::StatusCode::kUnknown);
  }
}

// Mean, covariance and rebuilt rows from the golden rows themselves, which have more digits than f32.
struct Golden {
  explicit Golden(const nlohmann::json& golden)
      : width(golden["layers"].get<size_t>() * golden["key_width"].get<size_t>()),
        columns(golden["latent_width"].get<size_t>()),
        calibration(test::numbers(golden["calibration"])),
        mean(width),
        covariance(width * width) {
    const size_t count = calibration.size() / width;
    for (size_t at = 0; at < calibration.size(); ++at) mean[at % width] += calibration[at] / static_cast<double>(count);
    for (size_t row = 0; row < count; ++row) {
      for (size_t i = 0; i < width; ++i) {
        for (size_t j = 0; j < width; ++j) {
          covariance[i * width + j] += (calibration[row * width + i] - mean[i]) *
                                       (calibration[row * width + j] - mean[j]) / static_cast<double>(count);
        }
      }
    }
  }

  size_t width, columns;
  std::vector<double> calibration, mean;
  Matrix covariance;
};

// The largest difference between mean + basis * basis^T (x - mean) and the golden rows.
double rebuild_error(const Golden& golden, const Matrix& basis, const Matrix& x, const Matrix& expected) {
  double largest = 0.0;
  for (size_t first = 0; first < x.size(); first += golden.width) {
    std::vector<double> rebuilt = golden.mean;
    for (size_t column = 0; column < golden.columns; ++column) {
      double latent = 0.0;
      for (size_t i = 0; i < golden.width; ++i) {
        latent += basis[i * golden.columns + column] * (x[first + i] - golden.mean[i]);
      }
      for (size_t i = 0; i < golden.width; ++i) rebuilt[i] += basis[i * golden.columns + column] * latent;
    }
    for (size_t i = 0; i < golden.width; ++i) largest = std::max(largest, std::abs(rebuilt[i] - expected[first + i]));
  }
  return largest;
}

TEST_CASE("golden: eigenvalues, and rows rebuilt from the leading directions") {
  const nlohmann::json file = test::read_golden("latent");
  const double tolerance = file["tolerance"].get<double>();
  for (const nlohmann::json& one : file["cases"]) {
    const Golden golden(one);
    const auto width = static_cast<int64_t>(golden.width);
    const auto columns = static_cast<int64_t>(golden.columns);
    const PrincipalDirections got = principal_directions(golden.covariance, width, columns).value();
    const std::vector<double> eigenvalues = test::numbers(one["eigenvalues"]);
    const std::vector<double> mean = test::numbers(one["mean"]);
    for (size_t index = 0; index < golden.width; ++index) {
      CHECK(std::abs(got.variances[index] - eigenvalues[index]) <= tolerance);
      CHECK(std::abs(golden.mean[index] - mean[index]) <= tolerance);
    }
    CHECK(rebuild_error(golden, got.basis, test::numbers(one["x"]), test::numbers(one["rebuilt_unquantized"])) <=
          tolerance);
  }
}

}  // namespace
}  // namespace foldkv
