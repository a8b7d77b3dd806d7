#include "runtime/calibration/solver.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/weigh_by_metric.h"
#include "tests/runtime/calibration/sample_text.h"
#include "tests/runtime/calibration/toy_backend.h"
#include "tests/support/golden.h"

namespace foldkv {
namespace {

using backend::Side;

constexpr int64_t kWidth = 16;

ProfileSide solved(const std::vector<float>& rows, int64_t width, const SolveOptions& options) {
  test::ToyBackend backend;
  Moments moments(width);
  MomentsScratch scratch(width);
  CHECK(moments.observe(backend, rows.data(), static_cast<int64_t>(rows.size()) / width, scratch).ok());
  return solve_side(backend, moments, nullptr, bands_of(options, Side::kKeys, width, width), options).value().side;
}

// basis * basis^T [width][width]: equal for bases of one space.
std::vector<double> projector(const ProfileSide& side, int64_t width) {
  std::vector<double> result(static_cast<size_t>(width * width));
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t k = 0; k < side.latent_width; ++k) {
        result[static_cast<size_t>(i * width + j)] +=
            static_cast<double>(side.basis[static_cast<size_t>(i * side.latent_width + k)]) *
            static_cast<double>(side.basis[static_cast<size_t>(j * side.latent_width + k)]);
      }
    }
  }
  return result;
}

// The largest difference between basis^T basis and the identity.
double not_orthonormal(const ProfileSide& side, int64_t width) {
  double largest = 0.0;
  for (int64_t a = 0; a < side.latent_width; ++a) {
    for (int64_t b = 0; b < side.latent_width; ++b) {
      double dot = a == b ? -1.0 : 0.0;
      for (int64_t row = 0; row < width; ++row) {
        dot += static_cast<double>(side.basis[static_cast<size_t>(row * side.latent_width + a)]) *
               static_cast<double>(side.basis[static_cast<size_t>(row * side.latent_width + b)]);
      }
      largest = std::max(largest, std::abs(dot));
    }
  }
  return largest;
}

// Variance of the rows along each latent coordinate.
std::vector<double> latent_variances(const ProfileSide& side, const std::vector<float>& rows, int64_t width) {
  std::vector<double> result(static_cast<size_t>(side.latent_width));
  const auto count = static_cast<int64_t>(rows.size()) / width;
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t k = 0; k < side.latent_width; ++k) {
      double latent = 0.0;
      for (int64_t i = 0; i < width; ++i) {
        const double number = static_cast<double>(rows[static_cast<size_t>(row * width + i)]);
        latent += static_cast<double>(side.basis[static_cast<size_t>(i * side.latent_width + k)]) *
                  (number - static_cast<double>(side.mean[static_cast<size_t>(i)]));
      }
      result[static_cast<size_t>(k)] += latent * latent / static_cast<double>(count);
    }
  }
  return result;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (size_t index = 0; index < a.size(); ++index) largest = std::max(largest, std::abs(a[index] - b[index]));
  return largest;
}

TEST_CASE("bands: one by default, cut to what a group has") {
  SolveOptions options;
  CHECK(bands_of(options, Side::kKeys, 192, 768) == std::vector<Band>{{192, 4}});
  options.latent_width = 500;
  options.bits = 6;
  CHECK(bands_of(options, Side::kValues, 192, 768) == std::vector<Band>{{500, 6}});
  CHECK(bands_of(options, Side::kValues, 192, 384) == std::vector<Band>{{384, 6}});
}

TEST_CASE("bands: explicit ones go before width and bits, for their side only") {
  SolveOptions options;
  options.latent_width = 50;
  options.key_bands = {{32, 8}, {64, 4}, {32, 0}};
  CHECK(bands_of(options, Side::kKeys, 64, 256) == options.key_bands);
  CHECK(bands_of(options, Side::kValues, 64, 256) == std::vector<Band>{{50, 4}});
  CHECK(bands_of(options, Side::kKeys, 64, 64) == std::vector<Band>{{32, 8}, {32, 4}});
  CHECK(bands_of(options, Side::kKeys, 64, 20) == std::vector<Band>{{20, 8}});
}

TEST_CASE("coordinates carry the leading variances, in falling order") {
  const std::vector<float> rows = test::sample_rows(600, kWidth, 40.0f, 11);
  SolveOptions options;
  options.latent_width = 6;
  const ProfileSide side = solved(rows, kWidth, options);
  CHECK(side.latent_width == 6);
  CHECK(side.basis.size() == kWidth * 6);
  CHECK(not_orthonormal(side, kWidth) < 1e-6);
  CHECK(std::is_sorted(side.variances.rbegin(), side.variances.rend()));
  const std::vector<double> leading(side.variances.begin(), side.variances.begin() + 6);
  CHECK(largest_difference(latent_variances(side, rows, kWidth), leading) < 1e-4);
}

TEST_CASE("the variances sum to that of the rows") {
  const std::vector<float> rows = test::sample_rows(600, kWidth, 2.0f, 12);
  const ProfileSide side = solved(rows, kWidth, {});
  double sum = 0.0;
  for (double variance : side.variances) sum += variance;
  double expected = 0.0;
  for (size_t index = 0; index < rows.size(); ++index) {
    const double distance = static_cast<double>(rows[index]) - static_cast<double>(side.mean[index % kWidth]);
    expected += distance * distance / 600.0;
  }
  CHECK(sum == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("rotation keeps the space and evens out spreads inside scale groups") {
  const std::vector<float> rows = test::sample_rows(600, kWidth, 2.0f, 13);
  SolveOptions options;
  options.key_bands = {{4, 8}, {6, 4}, {2, 0}};
  options.scale_group = 4;
  const ProfileSide plain = solved(rows, kWidth, options);
  options.rotate = true;
  const ProfileSide rotated = solved(rows, kWidth, options);
  CHECK(rotated.variances == plain.variances);
  CHECK(not_orthonormal(rotated, kWidth) < 1e-6);
  CHECK(largest_difference(projector(rotated, kWidth), projector(plain, kWidth)) < 1e-6);
  // Inside a Hadamard block every coordinate has the mean variance of the block: here 4, 4, 2; the rest is not stored.
  const std::vector<double> before = latent_variances(plain, rows, kWidth);
  const std::vector<double> after = latent_variances(rotated, rows, kWidth);
  const size_t blocks[][2] = {{0, 4}, {4, 4}, {8, 2}, {10, 1}, {11, 1}};
  for (const auto& block : blocks) {
    double mean = 0.0;
    for (size_t index = 0; index < block[1]; ++index) mean += before[block[0] + index] / static_cast<double>(block[1]);
    for (size_t index = 0; index < block[1]; ++index)
      CHECK(after[block[0] + index] == doctest::Approx(mean).epsilon(1e-4));
  }
}

TEST_CASE("without centring the leading direction is the mean, and no mean is kept") {
  const std::vector<float> rows = test::sample_rows(600, kWidth, 500.0f, 14);
  SolveOptions options;
  options.centred = false;
  const ProfileSide side = solved(rows, kWidth, options);
  CHECK(side.mean == std::vector<float>(kWidth, 0.0f));
  const double leading = side.variances[0];
  CHECK(leading == doctest::Approx(8 * 500.0 * 500.0 + 8 * 250.0 * 250.0).epsilon(1e-3));
  // Of the mean's direction: components of ratio 1 to -0.5.
  CHECK(side.basis[0] > 0.0f);
  CHECK(side.basis[kWidth] / side.basis[0] == doctest::Approx(-0.5).epsilon(1e-2));
}

// e^T M e of the part of a row that the first `kept` coordinates do not hold, mean over rows. Of two layers.
double mean_cost(const ProfileSide& side, const std::vector<float>& rows, const Metric& metric, int64_t kept) {
  const auto count = static_cast<int64_t>(rows.size()) / kWidth;
  double sum = 0.0;
  for (int64_t row = 0; row < count; ++row) {
    std::vector<double> error(kWidth);
    for (int64_t i = 0; i < kWidth; ++i) {
      error[static_cast<size_t>(i)] = static_cast<double>(rows[static_cast<size_t>(row * kWidth + i)]) -
                                      static_cast<double>(side.mean[static_cast<size_t>(i)]);
    }
    const std::vector<double> centred = error;
    for (int64_t k = 0; k < kept; ++k) {
      double latent = 0.0;
      for (int64_t i = 0; i < kWidth; ++i) {
        latent += static_cast<double>(side.projection[static_cast<size_t>(i * side.latent_width + k)]) *
                  centred[static_cast<size_t>(i)];
      }
      for (int64_t i = 0; i < kWidth; ++i) {
        error[static_cast<size_t>(i)] -=
            latent * static_cast<double>(side.basis[static_cast<size_t>(i * side.latent_width + k)]);
      }
    }
    for (double number : multiply_blocks(metric.roots, kWidth / 2, error, 1)) sum += number * number;
  }
  return sum / static_cast<double>(count);
}

TEST_CASE("with a metric, what is left out costs the variances of its coordinates") {
  const std::vector<float> rows = test::sample_rows(600, kWidth, 2.0f, 15);
  const std::vector<float> gradients = test::sample_rows(300, kWidth, 0.0f, 16);
  test::ToyBackend backend;
  Moments moments(kWidth);
  MomentsScratch scratch(kWidth);
  REQUIRE(moments.observe(backend, rows.data(), 600, scratch).ok());
  std::vector<std::vector<double>> blocks;
  for (int64_t layer = 0; layer < 2; ++layer) {
    std::vector<double> block(kWidth / 2 * kWidth / 2);
    for (int64_t row = 0; row < 300; ++row) {
      const float* const g = gradients.data() + row * kWidth + layer * kWidth / 2;
      for (int64_t i = 0; i < kWidth / 2; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
          block[static_cast<size_t>(i * kWidth / 2 + j)] += static_cast<double>(g[i]) * static_cast<double>(g[j]);
        }
      }
    }
    blocks.push_back(block);
  }
  const Metric metric = make_metric(blocks, kWidth / 2, 0.001).value();
  // In which the cost of an error is its squared length.
  std::vector<double> identity(kWidth / 2 * kWidth / 2);
  for (size_t i = 0; i < kWidth / 2; ++i) identity[i * (kWidth / 2 + 1)] = 1.0;
  const Metric plain{kWidth / 2, {identity, identity}, {identity, identity}};
  for (bool rotate : {false, true}) {
    CAPTURE(rotate);
    SolveOptions options;
    options.latent_width = kWidth;
    options.rotate = rotate;
    options.scale_group = 4;
    const ProfileSide side =
        solve_side(backend, moments, &metric, bands_of(options, Side::kKeys, kWidth, kWidth), options).value().side;
    for (int64_t kept : {0, 4, 12, 16}) {
      double expected = 0.0;
      for (int64_t k = kept; k < kWidth; ++k) expected += side.variances[static_cast<size_t>(k)];
      CHECK(mean_cost(side, rows, metric, kept) == doctest::Approx(expected).epsilon(1e-3));
      double energy = 0.0;
      for (int64_t k = kept; k < kWidth; ++k) {
        energy += side.gains[static_cast<size_t>(k)] * side.variances[static_cast<size_t>(k)];
      }
      CHECK(mean_cost(side, rows, plain, kept) == doctest::Approx(energy).epsilon(1e-3));
    }
    // Of directions that are not kept the gains are known too.
    options.latent_width = 4;
    const ProfileSide cut =
        solve_side(backend, moments, &metric, bands_of(options, Side::kKeys, kWidth, kWidth), options).value().side;
    CHECK(cut.gains == side.gains);
    CHECK(cut.basis.size() == kWidth * 4);
  }
}

TEST_CASE("golden: mean, eigenvalues and rebuilt rows as far as f32 rows and bases go") {
  const nlohmann::json golden = test::read_golden("latent");
  for (const nlohmann::json& one : golden["cases"]) {
    const int64_t width = one["layers"].get<int64_t>() * one["key_width"].get<int64_t>();
    SolveOptions options;
    options.latent_width = one["latent_width"].get<int64_t>();
    const ProfileSide side = solved(test::numbers_f32(one["calibration"]), width, options);
    const std::vector<double> mean(side.mean.begin(), side.mean.end());
    CHECK(largest_difference(mean, test::numbers(one["mean"])) < 1e-6);
    CHECK(largest_difference(side.variances, test::numbers(one["eigenvalues"])) < 1e-5);
    const std::vector<double> x = test::numbers(one["x"]);
    const std::vector<double> through = projector(side, width);
    std::vector<double> rebuilt(x.size());
    for (size_t at = 0; at < x.size(); ++at) {
      const size_t i = at % static_cast<size_t>(width);
      rebuilt[at] = mean[i];
      for (size_t j = 0; j < static_cast<size_t>(width); ++j) {
        rebuilt[at] += through[i * static_cast<size_t>(width) + j] * (x[at - i + j] - mean[j]);
      }
    }
    CHECK(largest_difference(rebuilt, test::numbers(one["rebuilt_unquantized"])) < 2e-5);
  }
}

TEST_CASE("options out of range are refused by name") {
  const auto refused = [](auto change) {
    SolveOptions options;
    change(options);
    return argument_of(check_solve_options(options));
  };
  CHECK(check_solve_options({}).ok());
  CHECK(refused([](SolveOptions& options) { options.latent_width = -1; }) == "latent_width");
  CHECK(refused([](SolveOptions& options) { options.latent_width = (1 << 20) + 1; }) == "latent_width");
  for (int32_t bad : {1, 9, 0, -4}) CHECK(refused([&](SolveOptions& options) { options.bits = bad; }) == "bits");
  for (int32_t bad : {0, -128}) {
    CHECK(refused([&](SolveOptions& options) { options.scale_group = bad; }) == "scale_group");
  }
  CHECK(refused([](SolveOptions& options) { options.key_bands = {{0, 4}}; }) == "key_bands[0].width");
  CHECK(refused([](SolveOptions& options) { options.key_bands = {{4, 0}, {4, 4}}; }) == "key_bands[0].bits");
  CHECK(refused([](SolveOptions& options) { options.value_bands = {{4, 4}, {4, 1}}; }) == "value_bands[1].bits");
  CHECK(refused([](SolveOptions& options) {
          options.value_bands = {{4, 4}, {4, 0}, {4, 2}};
        }) == "value_bands[2].bits");
  for (double bad : {0.0, -1.0, 1.5, std::nan("")}) {
    CHECK(refused([&](SolveOptions& options) { options.metric_floor = bad; }) == "metric_floor");
  }
  CHECK(refused([](SolveOptions& options) { options.correction.rank = -1; }) == "correction_rank");
  CHECK(refused([](SolveOptions& options) { options.correction.oversample = -1; }) == "correction_oversample");
  CHECK(refused([](SolveOptions& options) { options.correction.iterations = 17; }) == "correction_iterations");
  CHECK(refused([](SolveOptions& options) { options.made_by.assign(64, 'x'); }) == "made_by");
}

}  // namespace
}  // namespace foldkv
