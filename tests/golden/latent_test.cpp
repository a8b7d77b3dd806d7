#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "backends/reference/basis.h"
#include "backends/reference/quantizer.h"
#include "doctest/doctest.h"
#include "tests/support/backends.h"
#include "tests/support/golden.h"
#include "tests/support/layer_group.h"

namespace foldkv {
namespace {

using backend::ScaleGroup;
using backend::Side;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix(const nlohmann::json& rows) {
  const std::vector<double> numbers = test::numbers(rows);
  const auto count = static_cast<int64_t>(rows.size());
  return Eigen::Map<const Matrix>(numbers.data(), count, static_cast<int64_t>(numbers.size()) / count);
}

// A case of the golden file with the basis that its calibration rows give.
struct GoldenLatent {
  explicit GoldenLatent(const nlohmann::json& golden)
      : layers(golden["layers"].get<int64_t>()),
        key_width(golden["key_width"].get<int64_t>()),
        latent_width(golden["latent_width"].get<int64_t>()),
        bits(golden["bits"].get<int32_t>()),
        scale_group(golden["scale_group"].get<int64_t>()),
        rank(golden["correction_rank"].get<int64_t>()),
        x(matrix(golden["x"])),
        rebuilt_unquantized(matrix(golden["rebuilt_unquantized"])),
        rebuilt(matrix(golden["rebuilt"])),
        rebuilt_corrected(matrix(golden["rebuilt_corrected"])),
        relative_error(golden["relative_error"].get<double>()) {
    const Matrix calibration = matrix(golden["calibration"]);
    mean = calibration.colwise().mean();
    const Matrix centred = calibration.rowwise() - mean.row(0);
    const Eigen::MatrixXd covariance = centred.transpose() * centred / static_cast<double>(calibration.rows());
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance);
    eigenvalues = solver.eigenvalues().reverse();
    basis = solver.eigenvectors().rowwise().reverse().leftCols(latent_width);
  }

  [[nodiscard]] int64_t width() const { return layers * key_width; }
  [[nodiscard]] int64_t tokens() const { return x.rows(); }
  [[nodiscard]] double error_of(const Matrix& back) const {
    return (x - back).norm() / (x.rowwise() - mean.row(0)).norm();
  }

  int64_t layers, key_width, latent_width;
  int32_t bits;
  int64_t scale_group, rank;
  Matrix x, mean, basis, rebuilt_unquantized, rebuilt, rebuilt_corrected;
  Eigen::VectorXd eigenvalues;
  double relative_error;
};

// basis * latent + mean; latents pass through quantize [latent_width] on their way.
template <typename Quantize>
Matrix rebuild_in_double(const GoldenLatent& golden, Quantize quantize) {
  Matrix result(golden.tokens(), golden.width());
  std::vector<double> latent(static_cast<size_t>(golden.latent_width));
  for (int64_t t = 0; t < golden.tokens(); ++t) {
    const Matrix centred = golden.x.row(t) - golden.mean;
    backend::reference::project(golden.basis.data(), golden.width(), golden.latent_width, golden.latent_width,
                                centred.data(), latent.data());
    quantize(latent);
    backend::reference::expand(golden.basis.data(), golden.width(), golden.latent_width, golden.latent_width,
                               latent.data(), result.row(t).data());
  }
  return result.rowwise() + golden.mean.row(0);
}

void quantize(const GoldenLatent& golden, std::vector<double>& latent) {
  const std::vector<float> numbers(latent.begin(), latent.end());
  std::vector<int32_t> codes(latent.size());
  for (const ScaleGroup& group :
       test::make_plane({{golden.latent_width, golden.bits}}, golden.scale_group).scale_groups) {
    const uint16_t scale = backend::reference::quantize_group(numbers.data() + group.first, group.count, group.bits,
                                                              codes.data() + group.first)
                               .value();
    for (int32_t i = group.first; i < group.first + group.count; ++i) {
      latent[static_cast<size_t>(i)] = backend::reference::dequantize(codes[static_cast<size_t>(i)], scale);
    }
  }
}

TEST_CASE("latent: the reference in double precision") {
  const nlohmann::json file = test::read_golden("latent");
  const auto tolerance = file["tolerance"].get<double>();
  for (const nlohmann::json& json : file["cases"]) {
    const GoldenLatent golden(json);
    const auto mean = test::numbers(json["mean"]);
    for (int64_t i = 0; i < golden.width(); ++i) {
      CHECK(std::abs(golden.mean(0, i) - mean[static_cast<size_t>(i)]) <= tolerance);
    }
    const auto eigenvalues = test::numbers(json["eigenvalues"]);
    for (int64_t i = 0; i < golden.width(); ++i) {
      CHECK(std::abs(golden.eigenvalues[i] - eigenvalues[static_cast<size_t>(i)]) <= tolerance);
    }
    const Matrix unquantized = rebuild_in_double(golden, [](std::vector<double>&) {});
    CHECK((unquantized - golden.rebuilt_unquantized).cwiseAbs().maxCoeff() <= tolerance);
    const Matrix back = golden.bits > 8
                            ? unquantized
                            : rebuild_in_double(golden, [&](std::vector<double>& latent) { quantize(golden, latent); });
    CHECK(std::abs(golden.error_of(back) - golden.relative_error) <= 1e-3);
  }
}

// The rows of one case in exact pages, and what a backend makes of them.
class BackendLatents {
 public:
  BackendLatents(backend::Backend& backend, const GoldenLatent& golden)
      : backend_(backend),
        golden_(golden),
        basis_(golden.basis.cast<float>()),
        mean_(test::halves(std::vector<float>(golden.mean.data(), golden.mean.data() + golden.mean.size()))),
        plane_(test::make_plane({{golden.latent_width, golden.bits}}, golden.scale_group)),
        layout_(test::make_layout(plane_, plane_, golden.rank, 16)),
        exact_({32, golden.key_width, NumberFormat::kF32}, golden.layers, golden.tokens(), test::kPoison),
        latents_(layout_, golden.tokens(), test::kPoison),
        workspace_(backend.latent_workspace(
                       {golden.width(), golden.latent_width, golden.latent_width, golden.rank, golden.tokens()}),
                   test::kPoison) {
    const FloatMatrix rows = golden.x.cast<float>();
    for (int64_t t = 0; t < golden.tokens(); ++t) exact_.put(Side::kKeys, t, rows.row(t).data());
  }

  [[nodiscard]] Status encode() {
    return backend_.encode({exact_.rows(Side::kKeys, 0, golden_.tokens()), mean_.data(), basis_.data(), &layout_,
                            latents_.pool().pages(), 0, workspace_.data()});
  }
  // Takes the leading right singular vectors of the residual as the correction basis.
  [[nodiscard]] Status correct(const Eigen::MatrixXd& vectors) {
    const FloatMatrix leading = vectors.leftCols(golden_.rank).cast<float>();
    correction_ = test::halves(std::vector<float>(leading.data(), leading.data() + leading.size()));
    return backend_.coefficients(
        {exact_.rows(Side::kKeys, 0, golden_.tokens()), &layout_, region(), 0, basis_.data(), workspace_.data()});
  }
  [[nodiscard]] Matrix rebuild() {
    FloatMatrix rows = FloatMatrix::Constant(golden_.tokens(), golden_.width(), std::nanf(""));
    const Status status = backend_.rebuild({&layout_, region(), Side::kKeys, 0, golden_.tokens(), basis_.data(), 0,
                                            golden_.width(), rows.data(), workspace_.data()});
    REQUIRE(status.ok());
    return rows.cast<double>();
  }

 private:
  [[nodiscard]] backend::LatentRegion region() const {
    return {latents_.pool().pages(), golden_.tokens(), mean_.data(), nullptr,
            correction_.empty() ? nullptr : correction_.data()};
  }

  backend::Backend& backend_;
  const GoldenLatent& golden_;
  FloatMatrix basis_;
  std::vector<uint16_t> mean_;
  std::vector<uint16_t> correction_;
  backend::LatentPlane plane_;
  backend::LatentLayout layout_;
  test::StackedPages exact_;
  test::LatentPages latents_;
  test::MemoryBlock workspace_;
};

void check_backend(backend::Backend& backend, const GoldenLatent& golden) {
  BackendLatents latents(backend, golden);
  REQUIRE(latents.encode().ok());
  const Matrix plain = latents.rebuild();
  CHECK(std::abs(golden.error_of(plain) - golden.relative_error) <= 1e-3);
  if (golden.rank == 0) return;
  const Eigen::JacobiSVD<Eigen::MatrixXd> factors(golden.x - plain, Eigen::ComputeThinV);
  const double best = factors.singularValues().tail(golden.width() - golden.rank).squaredNorm();
  REQUIRE(latents.correct(factors.matrixV()).ok());
  const Matrix corrected = latents.rebuild();
  CHECK((golden.x - corrected).squaredNorm() == doctest::Approx(best).epsilon(1e-3));
  CHECK(std::abs(golden.error_of(corrected) - golden.error_of(golden.rebuilt_corrected)) <= 1e-3);
}

TEST_CASE("latent: every backend encodes, rebuilds and corrects") {
  const nlohmann::json file = test::read_golden("latent");
  for (const test::BackendChoice& choice : test::all_choices()) {
    CAPTURE(choice.name);
    const auto backend = test::open_backend(choice, 1);
    for (const nlohmann::json& json : file["cases"]) {
      const GoldenLatent golden(json);
      if (golden.bits <= 8) check_backend(*backend, golden);  // others are not quantized
    }
  }
}

}  // namespace
}  // namespace foldkv
