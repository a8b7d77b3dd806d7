#include "runtime/calibration/sensitivity.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/divergence.h"
#include "tests/support/golden.h"

namespace foldkv {
namespace {

using backend::Side;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

StatusOr<double> divergence(const std::vector<float>& reference, const std::vector<float>& perturbed) {
  return divergence_of_logits<float>(reference, perturbed);
}

TEST_CASE("golden divergences") {
  const nlohmann::json golden = test::read_golden("divergence");
  for (const nlohmann::json& expected : golden["cases"]) {
    for (size_t row = 0; row < expected["reference"].size(); ++row) {
      const double kl = expected["kl"][row];
      const std::vector<double> reference = test::numbers(expected["reference"][row]);
      const std::vector<double> perturbed = test::numbers(expected["perturbed"][row]);
      CHECK(std::abs(divergence_of_logits<double>(reference, perturbed).value() - kl) <=
            golden["tolerance"].get<double>());
      // As floats the logits are off by 2^-24 of their size, and the divergence by as much.
      CHECK(std::abs(divergence(test::numbers_f32(expected["reference"][row]),
                                test::numbers_f32(expected["perturbed"][row])).value() - kl) <= 1e-5);
    }
  }
}

TEST_CASE("divergences in closed form") {
  CHECK(divergence({0, 0}, {0, 0}).value() == 0.0);
  CHECK(divergence({5, 7}, {105, 107}).value() == doctest::Approx(0.0));
  CHECK(divergence({1, 1, 1, 1}, {100, 0, 0, 0}).value() == doctest::Approx(75.0 - std::log(4.0)));
  // Half the mass on each of two tokens against 1/3 and 2/3.
  CHECK(divergence({0, 0}, {0, std::log(2.0f)}).value() == doctest::Approx(0.5 * std::log(9.0 / 8.0)));
}

TEST_CASE("tokens that are ruled out") {
  CHECK(divergence({0, 0, -kInfinity}, {0, std::log(2.0f), -kInfinity}).value() ==
        doctest::Approx(0.5 * std::log(9.0 / 8.0)));
  CHECK(divergence({0, -kInfinity}, {0, 0}).value() == doctest::Approx(std::log(2.0)));
  CHECK(argument_of(divergence({0, 0}, {0, -kInfinity}).status()) == "perturbed");
  // What reference gives no chance in double precision costs nothing.
  CHECK(divergence({0, -3000}, {0, -kInfinity}).value() == 0.0);
}

TEST_CASE("rounding makes no divergence negative") {
  std::vector<float> logits;
  for (int i = 0; i < 1000; ++i) logits.push_back(std::sin(static_cast<float>(i)) * 20.0f);
  std::vector<float> near = logits;
  for (float& number : near) number = std::nextafter(number, 100.0f);
  CHECK(divergence(logits, near).value() >= 0.0);
  CHECK(divergence(logits, near).value() < 1e-10);
}

TEST_CASE("logits that are none") {
  for (const std::vector<float>& bad :
       {std::vector<float>{0, std::nanf("")}, {std::nanf(""), 0}, {kInfinity, 0}, {-kInfinity, -kInfinity}}) {
    CHECK(argument_of(divergence(bad, {0, 0}).status()) == "reference");
    CHECK(argument_of(divergence({0, 0}, bad).status()) == "perturbed");
    CHECK(divergence(bad, {0, 0}).status().code() == absl::StatusCode::kUnknown);
  }
}

TensorView rows_of(const std::vector<float>& numbers, int64_t width) {
  return {reinterpret_cast<const std::byte*>(numbers.data()), NumberFormat::kF32, std::ssize(numbers) / width, width,
          width};
}

std::shared_ptr<const Model> sample_model(size_t layers = 5) {
  LayerRules layer;
  layer.query_heads = 2;
  layer.kv_heads = 1;
  layer.head_size = 2;
  layer.attention_scale = 0.5;
  ModelDescription description;
  description.layers.assign(layers, layer);
  return Model::create(std::move(description)).value();
}

// Layer 1 of the model above shares its latents with none.
Profile sample_profile() {
  Profile profile;
  profile.model_fingerprint = sample_model()->fingerprint();
  profile.layer_count = 5;
  ProfileGroup group;
  group.layers = {1};
  group.key_width = 2;
  group.scale_group = 2;
  group.keys = {1, {0.6f, 0.8f}, {0.0f, 1.0f}, {2.0, 1.0}};
  group.values = group.keys;
  profile.groups = {group};
  profile.plans = {{"default", {{{{1, 4}}, {{1, 4}}}}}};
  REQUIRE(finish_profile(profile).ok());
  return profile;
}

TEST_CASE("means over rows, then over examples; layers and sides apart") {
  Sensitivity sensitivity(sample_model());
  const double step = 0.5 * std::log(9.0 / 8.0);
  const float log2 = std::log(2.0f);
  // Two rows of which one moves, then one row that moves.
  REQUIRE(sensitivity.add(3, Side::kValues, rows_of({0, 0, 1, 1}, 2), rows_of({0, log2, 1, 1}, 2)).ok());
  REQUIRE(sensitivity.add(3, Side::kValues, rows_of({0, 0}, 2), rows_of({0, log2}, 2)).ok());
  const LayerSensitivity figures = sensitivity.of(3, Side::kValues);
  CHECK(figures.divergence == doctest::Approx(0.75 * step));
  CHECK(figures.rows == 3);
  CHECK(figures.examples == 2);
  CHECK(sensitivity.of(3, Side::kKeys) == LayerSensitivity{});
  CHECK(sensitivity.of(2, Side::kValues) == LayerSensitivity{});
}

TEST_CASE("an example with a bad row adds nothing") {
  Sensitivity sensitivity(sample_model());
  const Status status = sensitivity.add(0, Side::kKeys, rows_of({0, 0, 0, 0}, 2), rows_of({0, 1, std::nanf(""), 0}, 2));
  CHECK(status.code() == absl::StatusCode::kUnknown);
  CHECK(argument_of(status) == "perturbed");
  CHECK(std::string(status.message()).find("row 1") != std::string::npos);
  CHECK(sensitivity.of(0, Side::kKeys).examples == 0);
}

TEST_CASE("merged sums are those of one object") {
  const std::vector<std::vector<float>> moved = {{0, 1}, {0, 2}, {0, 3}};
  Sensitivity all(sample_model());
  Sensitivity parts[2] = {Sensitivity(sample_model()), Sensitivity(sample_model())};
  for (size_t i = 0; i < moved.size(); ++i) {
    REQUIRE(all.add(1, Side::kKeys, rows_of({0, 0}, 2), rows_of(moved[i], 2)).ok());
    REQUIRE(parts[i == 0 ? 0 : 1].add(1, Side::kKeys, rows_of({0, 0}, 2), rows_of(moved[i], 2)).ok());
  }
  REQUIRE(parts[0].merge(parts[1]).ok());
  CHECK(parts[0].of(1, Side::kKeys).divergence == doctest::Approx(all.of(1, Side::kKeys).divergence).epsilon(1e-14));
  CHECK(parts[0].of(1, Side::kKeys).examples == 3);
  const Sensitivity stranger(sample_model(4));
  CHECK(parts[0].merge(stranger).code() == absl::StatusCode::kAborted);
}

TEST_CASE("figures go into a profile, and later ones take their place") {
  const Profile profile = sample_profile();
  Sensitivity sensitivity(sample_model());
  CHECK(with_sensitivity(profile, sensitivity, {}).status().code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(sensitivity.add(4, Side::kValues, rows_of({0, 0}, 2), rows_of({0, 1}, 2)).ok());
  const Profile with = with_sensitivity(profile, sensitivity, {0.05, 7, "text"}).value();
  CHECK(with.fingerprint == profile.fingerprint);
  REQUIRE(with.sensitivity.has_value());
  CHECK(with.sensitivity->values.size() == 5);
  CHECK(with.sensitivity->values[4] == sensitivity.of(4, Side::kValues));
  CHECK(with.sensitivity->keys[4].examples == 0);
  CHECK(with.sensitivity->seed == 7);
  CHECK(with_sensitivity(with, sensitivity, {0.1, 8, ""}).value().sensitivity->seed == 8);
  CHECK(argument_of(with_sensitivity(profile, sensitivity, {-1.0, 7, ""}).status()) == "sensitivity.scale");
  CHECK(argument_of(with_sensitivity(profile, sensitivity, {0.1, 7, std::string(64, 'x')}).status()) ==
        "sensitivity.text");
  Profile other = profile;
  other.model_fingerprint ^= 1;
  CHECK(with_sensitivity(other, sensitivity, {}).status().code() == absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace foldkv
