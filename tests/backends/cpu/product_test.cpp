#include <cmath>
#include <string>
#include <vector>

#include "tests/backends/cpu/instruction_sets.h"
#include "tests/support/number_io.h"
#include "tests/support/random.h"

namespace foldkv::test {
namespace {

struct Problem {
  Problem(Random& random, const backend::ProductShape& product_shape, int64_t weight_stride, NumberFormat bias_format)
      : shape(product_shape),
        x(random.normals<float>(shape.rows * shape.inner)),
        weight(shape.weight_format, shape.columns, shape.inner, weight_stride, kPoison,
               random.normals<float>(shape.columns * shape.inner)),
        bias(bias_format, 1, shape.columns, shape.columns, kPoison, random.normals<float>(shape.columns)) {}

  [[nodiscard]] std::vector<float> run(backend::Backend& device, int64_t first, int64_t rows) const {
    backend::ProductShape part = shape;
    part.rows = rows;
    auto product = device.make_product(part);
    REQUIRE(product.ok());
    const MemoryBlock workspace((*product)->workspace_bytes(), kPoison);
    std::vector<float> y(static_cast<size_t>(rows * shape.columns), std::nanf(""));
    const backend::ProductRequest request = {x.data() + first * shape.inner, weight.view(), bias.view(), y.data(),
                                             workspace.data()};
    REQUIRE((*product)->run(request).ok());
    const std::vector<float> once = y;
    REQUIRE((*product)->run(request).ok());
    CHECK(y == once);
    CHECK(workspace.canary_alive());
    return y;
  }
  [[nodiscard]] double worst_error(const std::vector<float>& y) const {
    double worst = 0.0;
    for (int64_t row = 0; row < shape.rows; ++row) {
      for (int64_t column = 0; column < shape.columns; ++column) {
        double expected = static_cast<double>(bias.at(0, column));
        for (int64_t k = 0; k < shape.inner; ++k) {
          expected += static_cast<double>(x[static_cast<size_t>(row * shape.inner + k)]) *
                      static_cast<double>(weight.at(column, k));
        }
        const float actual = y[static_cast<size_t>(row * shape.columns + column)];
        worst = std::max(worst, std::abs(static_cast<double>(actual) - expected));
      }
    }
    return worst;
  }

  backend::ProductShape shape;
  std::vector<float> x;
  TensorMemory weight;
  TensorMemory bias;
};

TEST_CASE("products of every kind are right, and the same on any number of threads") {
  Random random(1);
  for (const int64_t rows : {1, 3, 9, 70, 300}) {
    for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
      for (const bool deterministic : {false, true}) {
        for (const int64_t stride : {97, 101}) {  // dense, and not: oneDNN takes the first only
          const Problem problem(random, {rows, 97, 211, format, deterministic}, stride, format);
          for (const BackendChoice& choice : tested_choices()) {
            CAPTURE(choice.name);
            CAPTURE(rows);
            CAPTURE(name_of(format));
            const std::vector<float> y = problem.run(*open_backend(choice, 1), 0, rows);
            CHECK(problem.worst_error(y) < 3e-5);
            CHECK(problem.run(*open_backend(choice, 3), 0, rows) == y);
          }
        }
      }
    }
  }
}

TEST_CASE("a deterministic product of one row is that row of a product of many") {
  Random random(2);
  for (const bool by_backend : {false, true}) {
    for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kBF16}) {
      const Problem problem(random, {300, 600, 130, format, !by_backend}, 600, NumberFormat::kF32);
      for (const BackendChoice& choice : tested_choices()) {
        const auto device = open_backend(choice, 2, by_backend);
        const std::vector<float> whole = problem.run(*device, 0, 300);
        for (const int64_t rows : {1, 7, 256}) {
          for (int64_t first = 0; first + rows <= 300; first += 44) {
            const std::vector<float> part = problem.run(*device, first, rows);
            CHECK(std::equal(part.begin(), part.end(), whole.begin() + first * 130));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
