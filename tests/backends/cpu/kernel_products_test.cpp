#include <cmath>
#include <vector>

#include "tests/backends/cpu/instruction_sets.h"
#include "tests/support/number_io.h"
#include "tests/support/random.h"

namespace foldkv::backend::cpu {
namespace {

struct Shape {
  int64_t rows;
  int64_t columns;
  int64_t depth;
};

std::vector<Shape> shapes(int64_t column_step) {
  std::vector<Shape> all;
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 11, 13, 25}) {
    for (const int64_t columns : {1, 2, 3, 4, 5, 7, 9}) {
      for (const int64_t depth : {0, 1, 5, 16, 127, 129, 260}) all.push_back({rows, columns * column_step, depth});
    }
  }
  return all;
}

// The chain of operations that matrix_product promises, for instruction sets with fused multiply-adds or without.
float chain(const Kernels& kernels, float start, const float* a, const float* b, int64_t b_stride, int64_t depth) {
  const bool fused = std::string_view(kernels.name) != "portable";
  float sum = start;
  for (int64_t k = 0; k < depth; ++k) {
    if (fused) {
      sum = std::fma(a[k], b[k * b_stride], sum);
    } else {
      const float product = a[k] * b[k * b_stride];
      sum = sum + product;
    }
  }
  return sum;
}

TEST_CASE("matrix_product: every number is the same chain, whatever the shape around it") {
  test::Random random(1);
  for (const Shape& shape : shapes(16)) {
    CAPTURE(shape.rows);
    CAPTURE(shape.columns);
    CAPTURE(shape.depth);
    const std::vector<float> a = random.normals<float>(shape.rows * (shape.depth + 3) + 1);
    const std::vector<float> b = random.normals<float>(shape.depth * (shape.columns + 5) + 1);
    const std::vector<float> before = random.normals<float>(shape.rows * (shape.columns + 1));
    const std::vector<float> row_start = random.normals<float>(shape.rows);
    test::for_each_kernel_set([&](const Kernels& kernels) {
      using Start = MatrixProduct::Start;
      for (const Start start : {Start::kZero, Start::kRow, Start::kKeep, Start::kScaled}) {
        std::vector<float> c = before;
        kernels.matrix_product({.rows = shape.rows,
                                .columns = shape.columns,
                                .depth = shape.depth,
                                .a = a.data(),
                                .a_stride = shape.depth + 3,
                                .b = b.data(),
                                .b_stride = shape.columns + 5,
                                .c = c.data(),
                                .c_stride = shape.columns + 1,
                                .start = start,
                                .row_start = row_start.data()});
        int64_t wrong = 0;
        for (int64_t row = 0; row < shape.rows; ++row) {
          for (int64_t column = 0; column <= shape.columns; ++column) {
            const auto place = static_cast<size_t>(row * (shape.columns + 1) + column);
            float expected = before[place];
            if (column < shape.columns) {
              const float factor = row_start[static_cast<size_t>(row)];
              if (start == Start::kZero) expected = 0.0f;
              if (start == Start::kRow) expected = factor;
              if (start == Start::kScaled) expected = before[place] * factor;
              expected = chain(kernels, expected, a.data() + row * (shape.depth + 3), b.data() + column,
                               shape.columns + 5, shape.depth);
            }
            wrong += c[place] != expected ? 1 : 0;
          }
        }
        CHECK(wrong == 0);
      }
    });
  }
}

TEST_CASE("row_product: right, and each number the same alone as in the whole product") {
  test::Random random(2);
  for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
    for (const Shape& shape : shapes(1)) {
      CAPTURE(shape.rows);
      CAPTURE(shape.columns);
      CAPTURE(shape.depth);
      const std::vector<float> x = random.normals<float>(shape.rows * shape.depth + 1);
      const test::TensorMemory weight(format, shape.columns, shape.depth, shape.depth + 1, test::kPoison,
                                      random.normals<float>(shape.columns * shape.depth));
      const std::vector<float> bias = random.normals<float>(shape.columns);
      test::for_each_kernel_set([&](const Kernels& kernels) {
        const auto run = [&](int64_t row, int64_t rows, int64_t column, int64_t columns, float* y) {
          kernels.row_product({.rows = rows,
                               .columns = columns,
                               .depth = shape.depth,
                               .x = x.data() + row * shape.depth,
                               .x_stride = shape.depth,
                               .weight = weight.view().row(column),
                               .weight_format = format,
                               .weight_stride = shape.depth + 1,
                               .bias = bias.data() + column,
                               .y = y,
                               .y_stride = columns});
        };
        std::vector<float> whole(static_cast<size_t>(shape.rows * shape.columns));
        run(0, shape.rows, 0, shape.columns, whole.data());
        int64_t different = 0;
        double worst = 0.0;
        for (int64_t row = 0; row < shape.rows; ++row) {
          for (int64_t column = 0; column < shape.columns; ++column) {
            float alone = 0.0f;
            run(row, 1, column, 1, &alone);
            const float actual = whole[static_cast<size_t>(row * shape.columns + column)];
            different += alone != actual ? 1 : 0;
            double expected = static_cast<double>(bias[static_cast<size_t>(column)]);
            for (int64_t k = 0; k < shape.depth; ++k) {
              expected += static_cast<double>(x[static_cast<size_t>(row * shape.depth + k)]) *
                          static_cast<double>(weight.at(column, k));
            }
            worst = std::max(worst, std::abs(static_cast<double>(actual) - expected));
          }
        }
        CHECK(different == 0);
        CHECK(worst < 2e-5);
      });
    }
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu
