#include "samples/lab/measure_sensitivity.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/calibrate.h"
#include "samples/lab/forked_runs.h"
#include "samples/lab/plan_ratios.h"
#include "tests/samples/lab/stories.h"

namespace foldkv_lab::test {
namespace {

constexpr int64_t kLength = 160;
constexpr int64_t kPrefix = 128;

struct Scene {
  Scene() : language_model(load_stories()), threads(1) {
    auto created = FoldkvHost::create(language_model.model, language_model.name, {}, threads);
    REQUIRE_MESSAGE(created.ok(), created.status().message());
    host = std::move(created).value();
    std::string text;
    for (int i = 0; i < 12; ++i) text += kStoriesText + ". Then " + std::to_string(i) + " birds came. ";
    const std::vector<Token> tokens = language_model.tokenizer->encode(text).value();
    REQUIRE(static_cast<int64_t>(tokens.size()) >= 3 * kLength);
    for (int64_t i = 0; i < 2; ++i) {
      texts.push_back({"text", {tokens.begin() + i * kLength, tokens.begin() + (i + 1) * kLength}});
    }
    options.prefix = kPrefix;
  }

  [[nodiscard]] SensitivityMeasurement measure() {
    auto measured = measure_sensitivity(*host, texts, options, [&](int64_t done) { runs = done; });
    REQUIRE_MESSAGE(measured.ok(), measured.status().message());
    return std::move(measured).value();
  }

  LanguageModel language_model;
  ThreadPool threads;
  std::unique_ptr<FoldkvHost> host;
  std::vector<TextSample> texts;
  SensitivityOptions options;
  int64_t runs = 0;
};

TEST_CASE("an untouched fork predicts what its original does, a changed one something else") {
  Scene scene;
  const auto runs = ForkedRuns::create(*scene.host, {}, scene.texts[0].tokens, kPrefix);
  REQUIRE_MESSAGE(runs.ok(), runs.status().message());
  CHECK(runs->rest_count() == kLength - kPrefix);
  const auto again = runs->run([](foldkv::Sequence&) { return absl::OkStatus(); });
  CHECK(*again == runs->reference());
  CHECK(*runs->divergence_of(*again) == 0.0);
  auto noise = foldkv::init<foldkv_perturb_options>();
  noise.scale = 0.1;
  const auto changed = runs->run([&](foldkv::Sequence& fork) {
    CHECK(fork.perturb(noise).ok());
    return absl::OkStatus();
  });
  CHECK(*runs->divergence_of(*changed) > 0.0);
  CHECK_FALSE(runs->run([](foldkv::Sequence&) { return absl::InternalError("no"); }).ok());
  CHECK_FALSE(ForkedRuns::create(*scene.host, {}, scene.texts[0].tokens, kLength).ok());
  CHECK_FALSE(ForkedRuns::create(*scene.host, {}, scene.texts[0].tokens, 0).ok());
}

// Divergence is of second order: half the noise costs a quarter. (Keys work through the softmax, less evenly.)
TEST_CASE("every layer is measured, in proportion to the square of the scale") {
  Scene scene;
  scene.options.scale = 0.02;
  scene.options.keys = true;
  const SensitivityMeasurement loud = scene.measure();
  CHECK(scene.runs == 2 * 2 * 5);
  CHECK(*runs_of_text(*scene.host, scene.options) == 10);
  scene.options.scale = 0.01;
  const SensitivityMeasurement quiet = scene.measure();
  for (int32_t layer = 0; layer < 5; ++layer) {
    for (const int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) {
      const auto figures = loud.layers.of(layer, side);
      REQUIRE(figures.ok());
      CHECK(figures->examples == 2);
      CHECK(figures->rows == 2 * (kLength - kPrefix));
      CHECK(figures->divergence > 0.0);
    }
    const double quarter = quiet.layers.of(layer, FOLDKV_VALUES)->divergence;
    CHECK(loud.layers.of(layer, FOLDKV_VALUES)->divergence == doctest::Approx(4.0 * quarter).epsilon(0.02));
  }
  CHECK(loud.groups.empty());
  // The same again to the last bit; another seed is other noise.
  CHECK(scene.measure().layers.of(3, FOLDKV_VALUES)->divergence == quiet.layers.of(3, FOLDKV_VALUES)->divergence);
  scene.options.seed = 1;
  CHECK(scene.measure().layers.of(3, FOLDKV_VALUES)->divergence != quiet.layers.of(3, FOLDKV_VALUES)->divergence);
}

TEST_CASE("groups are measured under a plan, and give weights for new plans") {
  Scene scene;
  CalibrationOptions calibration;
  calibration.calibrator.layers_per_group = 2;
  calibration.solve.latent_width = 1000;
  calibration.solve.scale_group = 16;
  calibration.solve.use_metric = 1;
  calibration.solve.rotate = 1;
  calibration.gradients = true;
  calibration.ratios = {4, 8};
  const auto profile = calibrate(*scene.host, scene.texts, calibration, [](int64_t) {});
  REQUIRE_MESSAGE(profile.ok(), profile.status().message());
  scene.options.profile = &*profile;
  scene.options.groups_plan = "8x";
  CHECK(*runs_of_text(*scene.host, scene.options) == 5 + 2 * 3);
  const SensitivityMeasurement rough = scene.measure();
  CHECK(scene.runs == 2 * 11);
  REQUIRE(rough.groups.size() == 6);
  scene.options.groups_plan = "4x";
  const SensitivityMeasurement fine = scene.measure();
  double all_rough = 0.0;
  double all_fine = 0.0;
  for (size_t i = 0; i < 6; ++i) {
    CHECK(rough.groups[i] > 0.0);
    all_rough += rough.groups[i];
    all_fine += fine.groups[i];
  }
  CHECK(all_fine < all_rough);
  const auto weights = profile->group_weights(1, rough.groups);
  REQUIRE(weights.ok());
  const auto planned = plan_ratios(*profile, {8, 12}, *weights);
  REQUIRE_MESSAGE(planned.ok(), planned.status().message());
  CHECK(std::string(planned->plan_info(0)->name) == "8x");
  CHECK(planned->plan_info(1)->bytes_per_token < planned->plan_info(0)->bytes_per_token);
}

}  // namespace
}  // namespace foldkv_lab::test
