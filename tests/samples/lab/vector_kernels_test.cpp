#include "samples/lab/vector_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/half.h"
#include "tests/support/random.h"

namespace foldkv_lab::test {
namespace {

std::vector<const VectorKernels*> all_kernels() {
  std::vector<const VectorKernels*> kernels;
  for (const char* set : {"portable", "avx2", "avx512"}) {
    if (const VectorKernels* found = find_vector_kernels(set)) kernels.push_back(found);
  }
  return kernels;
}

TEST_CASE("the portable kernels are always there, other names never") {
  CHECK(find_vector_kernels("portable") != nullptr);
  CHECK(find_vector_kernels("mmx") == nullptr);
}

TEST_CASE("products of all small shapes") {
  foldkv::test::Random random(1);
  for (const VectorKernels* kernels : all_kernels()) {
    CAPTURE(std::string(kernels->instruction_set));
    for (int64_t rows = 1; rows <= 15; ++rows) {
      for (const int64_t columns : {16, 32, 64, 80}) {
        for (const bool accumulate : {false, true}) {
          const int64_t depth = random.between(1, 40);
          const std::vector<float> a = random.normals<float>(rows * (depth + 3));
          const std::vector<float> b = random.normals<float>(depth * (columns + 5));
          std::vector<float> c = random.normals<float>(rows * (columns + 1));
          std::vector<double> expected(c.begin(), c.end());
          for (int64_t row = 0; row < rows; ++row) {
            for (int64_t column = 0; column < columns; ++column) {
              double sum = accumulate ? expected[static_cast<size_t>(row * (columns + 1) + column)] : 0.0;
              for (int64_t i = 0; i < depth; ++i) {
                sum += static_cast<double>(a[static_cast<size_t>(row * (depth + 3) + i)]) *
                       static_cast<double>(b[static_cast<size_t>(i * (columns + 5) + column)]);
              }
              expected[static_cast<size_t>(row * (columns + 1) + column)] = sum;
            }
          }
          kernels->multiply(
              {a.data(), depth + 3, b.data(), columns + 5, c.data(), columns + 1, rows, depth, columns, accumulate});
          for (size_t i = 0; i < c.size(); ++i) CHECK(std::abs(static_cast<double>(c[i]) - expected[i]) < 1e-4);
        }
      }
    }
  }
}

TEST_CASE("one row times matrices of all small shapes") {
  foldkv::test::Random random(3);
  for (const VectorKernels* kernels : all_kernels()) {
    CAPTURE(std::string(kernels->instruction_set));
    for (int64_t rows = 1; rows <= 9; ++rows) {
      for (int64_t columns = 1; columns <= 70; ++columns) {
        const std::vector<float> weight = random.normals<float>(rows * columns);
        const std::vector<float> input = random.normals<float>(columns);
        std::vector<float> output = random.normals<float>(rows);
        const std::vector<float> before = output;
        kernels->multiply_row(weight.data(), input.data(), rows, columns, output.data());
        for (int64_t row = 0; row < rows; ++row) {
          double expected = static_cast<double>(before[static_cast<size_t>(row)]);
          for (int64_t i = 0; i < columns; ++i) {
            expected += static_cast<double>(weight[static_cast<size_t>(row * columns + i)]) *
                        static_cast<double>(input[static_cast<size_t>(i)]);
          }
          CHECK(std::abs(static_cast<double>(output[static_cast<size_t>(row)]) - expected) < 1e-4);
        }
      }
    }
  }
}

TEST_CASE("exponentials, maxima, scaling") {
  foldkv::test::Random random(2);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const VectorKernels* kernels : all_kernels()) {
    CAPTURE(std::string(kernels->instruction_set));
    std::vector<float> numbers = random.normals<float>(128, 20.0);
    numbers[5] = -infinity;
    numbers[6] = -1000.0f;
    const float largest = kernels->maximum(numbers.data(), 128);
    CHECK(largest == *std::max_element(numbers.begin(), numbers.end()));
    std::vector<float> powers = numbers;
    const float sum = kernels->exponentials(powers.data(), 128, largest);
    double expected_sum = 0;
    for (size_t i = 0; i < powers.size(); ++i) {
      const double expected = std::exp(static_cast<double>(numbers[i] - largest));
      // Below exp(-87) the result is zero.
      CHECK(std::abs(static_cast<double>(powers[i]) - expected) <= 3e-7 * expected + 1e-37);
      expected_sum += expected;
    }
    CHECK(powers[5] == 0.0f);
    CHECK(static_cast<double>(sum) == doctest::Approx(expected_sum).epsilon(1e-5));
    kernels->scale(numbers.data(), 16, 2.0f);
    CHECK(numbers[5] == -infinity);
    CHECK(numbers[6] == -2000.0f);
  }
}

TEST_CASE("halves widen exactly") {
  for (const VectorKernels* kernels : all_kernels()) {
    CAPTURE(std::string(kernels->instruction_set));
    std::vector<uint16_t> halves;
    for (uint32_t bits = 0; bits < 0x7c00; ++bits) halves.push_back(static_cast<uint16_t>(bits | (bits % 2 << 15)));
    std::vector<float> numbers(halves.size());
    kernels->widen_halves(halves.data(), numbers.data(), static_cast<int64_t>(halves.size()));
    bool equal = true;
    for (size_t i = 0; i < halves.size(); ++i) equal = equal && numbers[i] == half_to_float(halves[i]);
    CHECK(equal);
  }
}

}  // namespace
}  // namespace foldkv_lab::test
