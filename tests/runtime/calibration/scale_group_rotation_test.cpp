#include "runtime/calibration/scale_group_rotation.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

std::vector<double> identity(size_t width) {
  std::vector<double> matrix(width * width);
  for (size_t index = 0; index < width; ++index) matrix[index * width + index] = 1.0;
  return matrix;
}

// The rotation itself: what becomes of the identity.
std::vector<double> rotation_of(const std::vector<Band>& bands, int64_t scale_group, size_t width) {
  std::vector<double> matrix = identity(width);
  rotate_scale_groups(matrix, bands, scale_group);
  return matrix;
}

// H(i, j) = (-1)^(number of ones of i & j) / sqrt(size), for all i and j in [first, first + size); nothing beside it.
void check_blocks(const std::vector<double>& matrix, size_t width, const std::vector<size_t>& sizes) {
  std::vector<double> expected(width * width);
  size_t first = 0;
  for (size_t size : sizes) {
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        const double sign = __builtin_popcountll(i & j) % 2 == 0 ? 1.0 : -1.0;
        expected[(first + i) * width + first + j] = sign / std::sqrt(static_cast<double>(size));
      }
    }
    first += size;
  }
  CHECK(first == width);
  size_t wrong = 0;
  for (size_t index = 0; index < matrix.size(); ++index) {
    if (std::abs(matrix[index] - expected[index]) > 1e-15) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a scale group of a power of two is one Hadamard block") {
  check_blocks(rotation_of({{2, 4}}, 128, 2), 2, {2});
  check_blocks(rotation_of({{64, 4}}, 64, 64), 64, {64});
  check_blocks(rotation_of({{256, 4}}, 128, 256), 256, {128, 128});
}

TEST_CASE("other scale groups are cut into powers of two, the largest first") {
  check_blocks(rotation_of({{96, 4}}, 96, 96), 96, {64, 32});
  check_blocks(rotation_of({{100, 4}}, 128, 100), 100, {64, 32, 4});
  check_blocks(rotation_of({{7, 4}}, 7, 7), 7, {4, 2, 1});
  check_blocks(rotation_of({{3, 4}}, 1, 3), 3, {1, 1, 1});
}

TEST_CASE("the last scale group of a band may be shorter, and none crosses a band") {
  check_blocks(rotation_of({{192, 4}}, 128, 192), 192, {128, 64});
  check_blocks(rotation_of({{6, 8}, {5, 4}}, 4, 11), 11, {4, 2, 4, 1});
}

TEST_CASE("bands that are not stored stay") { check_blocks(rotation_of({{4, 8}, {3, 0}}, 4, 7), 7, {4, 1, 1, 1}); }

TEST_CASE("rows of a basis are turned alike, and lengths stay") {
  std::vector<double> basis = {3.0, 4.0, 0.0, 1.0, -1.0, 2.0};  // [2][3]
  rotate_scale_groups(basis, {{2, 4}, {1, 4}}, 8);
  const double root = std::sqrt(0.5);
  const std::vector<double> expected = {7.0 * root, -1.0 * root, 0.0, 0.0, 2.0 * root, 2.0};
  for (size_t index = 0; index < expected.size(); ++index) CHECK(basis[index] == doctest::Approx(expected[index]));
}

}  // namespace
}  // namespace foldkv
