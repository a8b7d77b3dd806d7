#include "runtime/calibration/calibrator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "tests/runtime/calibration/sample_text.h"
#include "tests/runtime/calibration/toy_backend.h"

namespace foldkv {
namespace {

using backend::Side;

// Three layers of key width 4 in groups of two: stacked widths 8 and 4.
constexpr int64_t kLayers = 3;
constexpr int64_t kWidth = 4;

struct Fixture {
  explicit Fixture(CalibratorOptions options = {.layers_per_group = 2}, int threads = 1)
      : backend(std::make_shared<test::ToyBackend>(threads)) {
    ModelDescription description = test::plain_description(kLayers, 2, 2);
    description.name = "toy";
    calibrator = Calibrator::create(backend, Model::create(description).value(), options).value();
  }

  void add(const test::SampleText& text, int64_t first, int64_t count) {
    const Status status = calibrator->observe(test::slice(text.key_views(), first, count),
                                              test::slice(text.value_views(), first, count), first);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
  }
  void add(const test::SampleText& text) { add(text, 0, text.key_views()[0].row_count); }
  [[nodiscard]] Profile solve(const SolveOptions& options = {}) const {
    StatusOr<Profile> profile = calibrator->solve(options);
    REQUIRE_MESSAGE(profile.ok(), profile.status().ToString());
    return std::move(profile).value();
  }

  std::shared_ptr<test::ToyBackend> backend;
  std::shared_ptr<Calibrator> calibrator;
};

test::SampleText sample_text(int64_t tokens = 600, uint32_t seed = 1) {
  return test::SampleText(kLayers, tokens, kWidth, seed);
}

// Mean of column `column` of tokens from `first` on, in f32 as a profile has it.
float mean_of(const std::vector<float>& rows, size_t column, size_t first) {
  double sum = 0.0;
  size_t count = 0;
  for (size_t at = first * kWidth + column; at < rows.size(); at += kWidth, ++count)
    sum += static_cast<double>(rows[at]);
  return static_cast<float>(sum / static_cast<double>(count));
}

TEST_CASE("a profile says what it was made of") {
  Fixture fixture;
  fixture.add(sample_text());
  SolveOptions options;
  options.made_by = "foldkv 0.1.0";
  options.scale_group = 64;
  options.correction = {2, 8, 1, 42};
  const Profile profile = fixture.solve(options);
  CHECK(profile.model_fingerprint == fixture.calibrator->model().fingerprint());
  CHECK(profile.model_name == "toy");
  CHECK(profile.layer_count == kLayers);
  CHECK(profile.centred);
  CHECK(profile.calibration_tokens == 600 - 4);
  CHECK(profile.calibration_samples == 1);
  CHECK(profile.made_by == "foldkv 0.1.0");
  REQUIRE(profile.groups.size() == 2);
  CHECK(profile.groups[0].layers == LayerGroup{0, 1});
  CHECK(profile.groups[1].layers == LayerGroup{2});
  for (const ProfileGroup& group : profile.groups) {
    CHECK(group.key_width == kWidth);
    CHECK(group.scale_group == 64);
    CHECK_FALSE(group.rotated);
    CHECK(group.correction == options.correction);
    CHECK(group.keys.latent_width == kWidth);
  }
  REQUIRE(profile.plans.size() == 1);
  CHECK(profile.plans[0].name == "default");
  REQUIRE(profile.plans[0].groups.size() == 2);
  for (const GroupPlan& plan : profile.plans[0].groups) CHECK(plan.values == std::vector<Band>{{4, 4}});
  CHECK(check_profile(profile, fixture.calibrator->model()).ok());
  Profile again = profile;
  CHECK(finish_profile(again).ok());
  CHECK(again.fingerprint == profile.fingerprint);
}

TEST_CASE("layers are stacked in the order of the group, keys and values apart") {
  Fixture fixture;
  const test::SampleText text = sample_text();
  fixture.add(text);
  const Profile profile = fixture.solve();
  for (size_t column = 0; column < kWidth; ++column) {
    CHECK(profile.groups[0].keys.mean[column] == doctest::Approx(mean_of(text.keys[0], column, 4)));
    CHECK(profile.groups[0].keys.mean[kWidth + column] == doctest::Approx(mean_of(text.keys[1], column, 4)));
    CHECK(profile.groups[0].values.mean[kWidth + column] == doctest::Approx(mean_of(text.values[1], column, 4)));
    CHECK(profile.groups[1].keys.mean[column] == doctest::Approx(mean_of(text.keys[2], column, 4)));
  }
}

TEST_CASE("the first tokens of every sample are left out") {
  test::SampleText spoiled = sample_text();
  for (auto* layers : {&spoiled.keys, &spoiled.values}) {
    for (std::vector<float>& rows : *layers) std::fill(rows.begin(), rows.begin() + 4 * kWidth, 1e6f);
  }
  Fixture clean;
  Fixture dirty;
  clean.add(sample_text());
  dirty.add(spoiled);
  CHECK(clean.solve().fingerprint == dirty.solve().fingerprint);

  Fixture all({.layers_per_group = 2, .skip_tokens = 0});
  all.add(spoiled);
  const Profile profile = all.solve();
  CHECK(profile.calibration_tokens == 600);
  CHECK(profile.groups[0].keys.mean[0] == doctest::Approx(mean_of(spoiled.keys[0], 0, 0)));
}

TEST_CASE("samples of a few tokens may be left out whole") {
  Fixture fixture;
  fixture.add(sample_text(3, 2));
  CHECK(fixture.calibrator->sample_count() == 1);
  fixture.add(sample_text());
  CHECK(fixture.solve().calibration_tokens == 596);
  CHECK(fixture.solve().calibration_samples == 2);
}

TEST_CASE("how a sample is cut into pieces changes no bit") {
  const test::SampleText text = sample_text(700);
  Fixture whole;
  whole.add(text);
  const uint64_t expected = whole.solve().fingerprint;
  for (int64_t piece : {1, 3, 256, 300}) {
    CAPTURE(piece);
    Fixture cut;
    for (int64_t first = 0; first < 700; first += piece) cut.add(text, first, std::min<int64_t>(piece, 700 - first));
    CHECK(cut.calibrator->sample_count() == 1);
    CHECK(cut.solve().fingerprint == expected);
  }
}

TEST_CASE("gradients make a metric, whichever way they are cut, merged and ordered") {
  const test::SampleText text = sample_text();
  const test::SampleText gradients = sample_text(200, 7);
  const auto observe_gradients = [&](Calibrator& calibrator, int64_t first, int64_t count) {
    CHECK(calibrator
              .observe_gradients(test::slice(gradients.key_views(), first, count),
                                 test::slice(gradients.value_views(), first, count), first)
              .ok());
  };
  SolveOptions options;
  options.use_metric = true;
  options.latent_width = 8;
  Fixture whole;
  whole.add(text);
  observe_gradients(*whole.calibrator, 0, 200);
  const Profile profile = whole.solve(options);
  CHECK(profile.groups[0].keys.projection.size() == profile.groups[0].keys.basis.size());
  CHECK(profile.groups[0].keys.projection != profile.groups[0].keys.basis);
  CHECK(profile.groups[0].keys.variances != whole.solve().groups[0].keys.variances);

  Fixture cut;
  observe_gradients(*cut.calibrator, 0, 70);
  cut.add(text);
  observe_gradients(*cut.calibrator, 70, 130);
  CHECK(cut.solve(options).fingerprint == profile.fingerprint);

  // Merging joins sums in another order: equal but for rounding.
  Fixture rows_only;
  rows_only.add(text);
  Fixture gradients_only;
  observe_gradients(*gradients_only.calibrator, 0, 200);
  REQUIRE(rows_only.calibrator->merge(*gradients_only.calibrator).ok());
  const Profile merged = rows_only.solve(options);
  for (size_t index = 0; index < profile.groups[0].keys.variances.size(); ++index) {
    CHECK(merged.groups[0].keys.variances[index] ==
          doctest::Approx(profile.groups[0].keys.variances[index]).epsilon(1e-9));
  }
}

// 4 rows of 8 and of 4 coordinates: of the first group some directions hold no row.
TEST_CASE("fewer rows than coordinates give a profile that says so") {
  const test::SampleText text = sample_text(8);
  Fixture fixture;
  fixture.add(text);
  CHECK(fixture.calibrator
            ->observe_gradients(sample_text(20, 7).key_views(), sample_text(20, 7).value_views(), 0)
            .ok());
  for (bool metric : {false, true}) {
    for (bool centred : {false, true}) {
      CAPTURE(metric);
      CAPTURE(centred);
      const Profile profile = fixture.solve({.latent_width = 8, .centred = centred, .use_metric = metric});
      CHECK(profile.shrinkage > 0.0);
      CHECK(profile.shrinkage <= 1.0);
      CHECK(profile.calibration_tokens == 4);
      const ProfileSide& side = profile.groups[0].keys;
      CHECK(side.variances.back() > 0.0);  // though no row lies there
      const std::vector<float>& down = metric ? side.projection : side.basis;
      for (size_t a = 0; a < 8; ++a) {
        for (size_t b = 0; b < 8; ++b) {
          double dot = a == b ? -1.0 : 0.0;
          for (size_t row = 0; row < 8; ++row) {
            dot += static_cast<double>(down[row * 8 + a]) * static_cast<double>(side.basis[row * 8 + b]);
          }
          CHECK(std::abs(dot) < 1e-5);
        }
      }
    }
  }
  // The trace stays: the sum of squared distances from the mean, over the rows.
  double variance = 0.0;
  double sum = 0.0;
  for (size_t layer = 0; layer < 2; ++layer) {
    for (size_t column = 0; column < kWidth; ++column) {
      const auto mean = static_cast<double>(mean_of(text.keys[layer], column, 4));
      for (size_t token = 4; token < 8; ++token) {
        const double distance = static_cast<double>(text.keys[layer][token * kWidth + column]) - mean;
        variance += distance * distance / 4.0;
      }
    }
  }
  const Profile profile = fixture.solve();
  for (double one : profile.groups[0].keys.variances) sum += one;
  CHECK(sum == doctest::Approx(variance).epsilon(1e-5));
}

TEST_CASE("enough rows are not shrunk") {
  Fixture fixture;
  fixture.add(sample_text(12));
  CHECK(fixture.solve().shrinkage == 0.0);
}

TEST_CASE("every number format, and rows that are apart, are read") {
  const test::SampleText text = sample_text(300);
  const int64_t stride = kWidth + 3;
  std::vector<std::vector<uint16_t>> halves;
  test::SampleText rounded = text;
  std::vector<TensorView> views;
  for (auto& rows : rounded.keys) {
    std::vector<uint16_t> apart(300 * static_cast<size_t>(stride), 0x7e00);  // NaN between the rows
    for (size_t at = 0; at < rows.size(); ++at) {
      const uint16_t half = f16_from_f32(rows[at]);
      apart[at / kWidth * static_cast<size_t>(stride) + at % kWidth] = half;
      rows[at] = f32_from_f16(half);
    }
    halves.push_back(std::move(apart));
  }
  for (const auto& apart : halves) {
    views.push_back({reinterpret_cast<const std::byte*>(apart.data()), NumberFormat::kF16, 300, kWidth, stride});
  }
  std::vector<std::vector<uint16_t>> brains;
  for (auto& rows : rounded.values) {
    brains.emplace_back();
    for (float& number : rows) {
      brains.back().push_back(bf16_from_f32(number));
      number = f32_from_bf16(brains.back().back());
    }
  }
  std::vector<TensorView> value_views;
  for (const auto& rows : brains) {
    value_views.push_back({reinterpret_cast<const std::byte*>(rows.data()), NumberFormat::kBF16, 300, kWidth, kWidth});
  }
  Fixture narrow;
  CHECK(narrow.calibrator->observe(views, value_views, 0).ok());
  Fixture wide;
  wide.add(rounded);
  CHECK(narrow.solve().fingerprint == wide.solve().fingerprint);
}

TEST_CASE("the number of threads changes no bit") {
  Fixture one;
  Fixture four({.layers_per_group = 2}, 4);
  one.add(sample_text());
  four.add(sample_text());
  for (bool rotate : {false, true}) {
    CHECK(one.solve({.rotate = rotate}).fingerprint == four.solve({.rotate = rotate}).fingerprint);
  }
}

TEST_CASE("merged calibrators are one that has seen all") {
  const test::SampleText first = sample_text(500, 1);
  const test::SampleText second = sample_text(333, 2);
  Fixture all;
  all.add(first);
  all.add(second);
  Fixture merged;
  Fixture other;
  merged.add(first);
  other.add(second);
  CHECK(merged.calibrator->merge(*other.calibrator).ok());
  const Profile expected = all.solve();
  const Profile got = merged.solve();
  CHECK(got.calibration_tokens == expected.calibration_tokens);
  CHECK(got.calibration_samples == 2);
  for (size_t group = 0; group < 2; ++group) {
    const ProfileSide& a = got.groups[group].keys;
    const ProfileSide& b = expected.groups[group].keys;
    for (size_t at = 0; at < a.variances.size(); ++at) {
      CHECK(a.variances[at] == doctest::Approx(b.variances[at]).epsilon(1e-12));
    }
    for (size_t at = 0; at < a.basis.size(); ++at) CHECK(std::abs(a.basis[at] - b.basis[at]) < 1e-6f);
    for (size_t at = 0; at < a.mean.size(); ++at) CHECK(a.mean[at] == doctest::Approx(b.mean[at]).epsilon(1e-6));
  }
  CHECK(other.solve().calibration_tokens == 329);
}

TEST_CASE("explicit groups, bands and rotation reach the profile") {
  Fixture fixture({.groups = {{1}, {0, 2}}});
  fixture.add(sample_text());
  SolveOptions options;
  options.key_bands = {{2, 8}, {3, 3}, {1, 0}};
  options.scale_group = 2;
  options.rotate = true;
  options.centred = false;
  const Profile profile = fixture.solve(options);
  CHECK(profile.groups[0].layers == LayerGroup{0, 2});
  CHECK(profile.groups[1].layers == LayerGroup{1});
  CHECK(profile.plans[0].groups[0].keys == options.key_bands);
  CHECK(profile.plans[0].groups[1].keys == std::vector<Band>{{2, 8}, {2, 3}});
  CHECK(profile.plans[0].groups[0].values == std::vector<Band>{{4, 4}});
  CHECK(profile.groups[0].rotated);
  CHECK_FALSE(profile.centred);
  CHECK(profile.groups[0].correction == CorrectionRules{});
  CHECK(profile.groups[0].keys.mean == std::vector<float>(8, 0.0f));
}

}  // namespace
}  // namespace foldkv
