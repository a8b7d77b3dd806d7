#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/base/status.h"
#include "tests/support/backends.h"
#include "tests/support/layer_group.h"

// Latent operations against the same formulas in matrices.
namespace foldkv::backend {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix_of_halves(const std::vector<uint16_t>& numbers, int64_t rows, int64_t columns) {
  Matrix matrix(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    matrix.data()[i] = static_cast<double>(f32_from_f16(numbers[static_cast<size_t>(i)]));
  }
  return matrix;
}

// Three layers of width 4 in one group, 7 tokens of which the first is a sink.
struct Group {
  static constexpr int64_t kTokens = 6;
  static constexpr int64_t kFirstSlot = 1;
  static constexpr int64_t kFirstLatent = 2;
  static constexpr int64_t kLayers = 3;
  static constexpr int64_t kWidth = 12;
  static constexpr int64_t kLatentWidth = 5;
  static constexpr int64_t kRank = 2;

  Group()
      : random(6),
        layout(test::make_layout(test::make_plane({{3, 6}, {2, 4}}, 2), test::make_plane({{5, 5}}, 8), kRank, 4)),
        exact({4, 4, NumberFormat::kF16}, kLayers, kFirstSlot + kTokens, test::kPoison),
        latents(layout, kFirstLatent + kTokens, test::kPoison),
        basis(test::random_basis(random, kWidth, kLatentWidth)),
        key_mean(test::halves(random.normals<float>(kWidth))),
        value_mean(test::halves(random.normals<float>(kWidth))),
        correction(test::halves(random.normals<float>(kWidth * kRank, 0.3))),
        workspace(backend().latent_workspace({kWidth, kLatentWidth, kLatentWidth, 4, kTokens}), test::kPoison) {
    for (int64_t t = 0; t < kTokens; ++t) {
      for (const Side side : {Side::kKeys, Side::kValues}) {
        exact.put(side, kFirstSlot + t, random.normals<float>(kWidth, 2.0).data());
      }
    }
    latents.randomize(random, 0, kFirstLatent + kTokens, 1.0);
  }

  static Backend& backend() {
    static const auto backend = test::open_backend(test::reference_choice(), 1);
    return *backend;
  }
  [[nodiscard]] StackedRows rows(Side side) const { return exact.rows(side, kFirstSlot, kTokens); }
  [[nodiscard]] Matrix row_matrix(Side side) const {
    const std::vector<double> numbers = exact.numbers(side, kFirstSlot, kTokens);
    return Eigen::Map<const Matrix>(numbers.data(), kTokens, kWidth);
  }
  [[nodiscard]] LatentRegion region(bool corrected) const {
    return {latents.pool().pages(), kFirstLatent + kTokens, key_mean.data(), value_mean.data(),
            corrected ? correction.data() : nullptr};
  }
  [[nodiscard]] Matrix basis_matrix() const {
    return Eigen::Map<const FloatMatrix>(basis.data(), kWidth, kLatentWidth).cast<double>();
  }
  // [kTokens][kLatentWidth] of the latents from kFirstLatent on
  [[nodiscard]] Matrix latent_matrix(Side side) const {
    Matrix matrix = Matrix::Zero(kTokens, kLatentWidth);
    for (int64_t t = 0; t < kTokens; ++t) {
      int64_t index = 0;
      for (const ScaleGroup& group : layout.plane(side).scale_groups) {
        const double step = static_cast<double>(f32_from_f16(latents.scales(side, kFirstLatent + t)[index++]));
        for (int32_t i = 0; i < group.count; ++i) {
          matrix(t, group.first + i) = step * latents.code(side, kFirstLatent + t, group, i);
        }
      }
    }
    return matrix;
  }
  [[nodiscard]] Matrix rebuilt_matrix(Side side) const {
    const Matrix mean = matrix_of_halves(side == Side::kKeys ? key_mean : value_mean, 1, kWidth);
    return (latent_matrix(side) * basis_matrix().transpose()).rowwise() + mean.row(0);
  }
  [[nodiscard]] Matrix coefficient_matrix() const {
    Matrix matrix(kTokens, kRank);
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t j = 0; j < kRank; ++j) {
        matrix(t, j) = static_cast<double>(f32_from_f16(latents.coefficients(kFirstLatent + t)[j]));
      }
    }
    return matrix;
  }

  test::Random random;
  LatentLayout layout;
  test::StackedPages exact;
  test::LatentPages latents;
  std::vector<float> basis;
  std::vector<uint16_t> key_mean, value_mean, correction;
  test::MemoryBlock workspace;
};

TEST_CASE("the mean is that of the stacked rows, in f16") {
  const Group group;
  for (const Side side : {Side::kKeys, Side::kValues}) {
    std::vector<uint16_t> mean(Group::kWidth, 0xffff);
    REQUIRE(Group::backend().mean({group.rows(side), mean.data(), group.workspace.data()}).ok());
    const Matrix expected = group.row_matrix(side).colwise().mean();
    for (int64_t i = 0; i < Group::kWidth; ++i) {
      CHECK(mean[static_cast<size_t>(i)] == f16_from_f32(static_cast<float>(expected(0, i))));
    }
  }
  StackedRows none = group.rows(Side::kKeys);
  none.count = 0;
  std::vector<uint16_t> mean(Group::kWidth);
  CHECK(Group::backend().mean({none, mean.data(), group.workspace.data()}).code() == absl::StatusCode::kUnknown);
}

TEST_CASE("encoded latents lie within half a step of basis^T (row - mean)") {
  const Group group;
  for (const Side side : {Side::kKeys, Side::kValues}) {
    const auto& mean = side == Side::kKeys ? group.key_mean : group.value_mean;
    const EncodeRequest request{
        group.rows(side),    mean.data(),           group.basis.data(), &group.layout, group.latents.pool().pages(),
        Group::kFirstLatent, group.workspace.data()};
    REQUIRE(Group::backend().encode(request).ok());
    const Matrix centred = group.row_matrix(side).rowwise() - matrix_of_halves(mean, 1, Group::kWidth).row(0);
    const Matrix expected = centred * group.basis_matrix();
    const Matrix stored = group.latent_matrix(side);
    for (int64_t t = 0; t < Group::kTokens; ++t) {
      int64_t index = 0;
      for (const ScaleGroup& scale_group : group.layout.plane(side).scale_groups) {
        const double step =
            static_cast<double>(f32_from_f16(group.latents.scales(side, Group::kFirstLatent + t)[index++]));
        const double largest = expected.row(t).segment(scale_group.first, scale_group.count).cwiseAbs().maxCoeff();
        CHECK(step * ((1 << (scale_group.bits - 1)) - 1) == doctest::Approx(largest).epsilon(1e-3));
        for (int32_t i = 0; i < scale_group.count; ++i) {
          CHECK(std::abs(stored(t, scale_group.first + i) - expected(t, scale_group.first + i)) <= 0.501 * step);
        }
      }
    }
  }
}

TEST_CASE("a latent without a scale is refused") {
  const Group group;
  std::vector<float> basis = group.basis;
  const auto encode = [&] {
    return Group::backend()
        .encode({group.rows(Side::kKeys), nullptr, basis.data(), &group.layout, group.latents.pool().pages(), 0,
                 group.workspace.data()})
        .code();
  };
  basis[3] = 1e9f;
  CHECK(encode() == absl::StatusCode::kUnknown);
  basis[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(encode() == absl::StatusCode::kUnknown);
}

TEST_CASE("rebuilt rows are basis * latent + mean, keys corrected") {
  const Group group;
  for (const Side side : {Side::kKeys, Side::kValues}) {
    for (const bool corrected : {false, true}) {
      Matrix expected = group.rebuilt_matrix(side);
      if (corrected && side == Side::kKeys) {
        expected +=
            group.coefficient_matrix() * matrix_of_halves(group.correction, Group::kWidth, Group::kRank).transpose();
      }
      for (const auto& [first_row, row_count] : {std::pair<int64_t, int64_t>{0, 12}, {4, 4}, {8, 4}}) {
        std::vector<float> output(static_cast<size_t>(Group::kTokens * row_count), std::nanf(""));
        const RebuildRequest request{&group.layout,  group.region(corrected),
                                     side,           Group::kFirstLatent,
                                     Group::kTokens, group.basis.data() + first_row * Group::kLatentWidth,
                                     first_row,      row_count,
                                     output.data(),  group.workspace.data()};
        REQUIRE(Group::backend().rebuild(request).ok());
        for (int64_t t = 0; t < Group::kTokens; ++t) {
          for (int64_t i = 0; i < row_count; ++i) {
            CHECK(static_cast<double>(output[static_cast<size_t>(t * row_count + i)]) ==
                  doctest::Approx(expected(t, first_row + i)).epsilon(1e-6));
          }
        }
      }
    }
  }
}

TEST_CASE("a sketch is E^T (E test), a coefficient the residual on the correction basis") {
  const Group group;
  const Matrix residual = group.row_matrix(Side::kKeys) - group.rebuilt_matrix(Side::kKeys);
  test::Random random(7);
  const auto test_matrix = random.normals<double>(Group::kWidth * 4);
  std::vector<double> sketch(test_matrix.size(), std::nan(""));
  // The region's correction basis is set, as it is when a later run is sketched: it must not matter.
  REQUIRE(Group::backend()
              .sketch({group.rows(Side::kKeys), &group.layout, group.region(true), Group::kFirstLatent,
                       group.basis.data(), test_matrix.data(), 4, sketch.data(), group.workspace.data()})
              .ok());
  const Matrix expected =
      residual.transpose() * (residual * Eigen::Map<const Matrix>(test_matrix.data(), Group::kWidth, 4));
  for (int64_t i = 0; i < expected.size(); ++i) {
    CHECK(sketch[static_cast<size_t>(i)] == doctest::Approx(expected.data()[i]).epsilon(1e-10));
  }
  REQUIRE(Group::backend()
              .coefficients({group.rows(Side::kKeys), &group.layout, group.region(true), Group::kFirstLatent,
                             group.basis.data(), group.workspace.data()})
              .ok());
  const Matrix coefficients = residual * matrix_of_halves(group.correction, Group::kWidth, Group::kRank);
  const Matrix stored = group.coefficient_matrix();
  for (int64_t i = 0; i < stored.size(); ++i) {
    CHECK(stored.data()[i] == doctest::Approx(coefficients.data()[i]).epsilon(1e-3));
  }
}

TEST_CASE("moments add column sums and the lower triangle of products") {
  test::Random random(8);
  const auto rows = random.normals<float>(9 * 5);
  std::vector<double> sum(5, 1.0);
  std::vector<double> products(25, 2.0);
  REQUIRE(Group::backend().moments({rows.data(), 9, 5, sum.data(), products.data()}).ok());
  const Matrix x = Eigen::Map<const FloatMatrix>(rows.data(), 9, 5).cast<double>();
  const Matrix expected = x.transpose() * x;
  for (int64_t i = 0; i < 5; ++i) {
    CHECK(sum[static_cast<size_t>(i)] == doctest::Approx(1.0 + x.col(i).sum()));
    for (int64_t j = 0; j < 5; ++j) {
      CHECK(products[static_cast<size_t>(i * 5 + j)] == doctest::Approx(j <= i ? 2.0 + expected(i, j) : 2.0));
    }
  }
}

}  // namespace
}  // namespace foldkv::backend
