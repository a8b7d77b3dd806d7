#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/calibrator.h"
#include "tests/runtime/calibration/sample_text.h"
#include "tests/runtime/calibration/toy_backend.h"

namespace foldkv {
namespace {


constexpr int64_t kLayers = 3;
constexpr int64_t kWidth = 4;
constexpr int64_t kTokens = 300;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::shared_ptr<Model> toy_model(const std::function<void(ModelDescription&)>& change = [](ModelDescription&) {}) {
  ModelDescription description = test::plain_description(kLayers, 2, 2);
  description.name = "toy";
  change(description);
  return Model::create(description).value();
}

std::shared_ptr<Calibrator> toy_calibrator(const CalibratorOptions& options = {.layers_per_group = 2},
                                           std::shared_ptr<Model> model = toy_model()) {
  return Calibrator::create(std::make_shared<test::ToyBackend>(), std::move(model), options).value();
}

void add_text(Calibrator& calibrator, int64_t tokens = kTokens) {
  const test::SampleText text(kLayers, tokens, kWidth, 1);
  const Status status = calibrator.observe(text.key_views(), text.value_views(), 0);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
}

// Runs something that must fail on a calibrator that has seen a text, checks that nothing changed, returns the error.
Status refused(const std::function<Status(Calibrator&)>& call) {
  const std::shared_ptr<Calibrator> calibrator = toy_calibrator();
  add_text(*calibrator);
  const uint64_t before = calibrator->solve({}).value().fingerprint;
  Status status = call(*calibrator);
  CHECK_FALSE(status.ok());
  CHECK(calibrator->solve({}).value().fingerprint == before);
  CHECK(calibrator->sample_count() == 1);
  return status;
}

struct Views {
  std::vector<TensorView> keys;
  std::vector<TensorView> values;
};

std::string refused_argument(const std::function<void(Views&)>& change, int64_t first_token = 0) {
  test::SampleText text(kLayers, 10, kWidth, 2);
  Views views = {text.key_views(), text.value_views()};
  change(views);
  const Status status =
      refused([&](Calibrator& calibrator) { return calibrator.observe(views.keys, views.values, first_token); });
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  return argument_of(status);
}

TEST_CASE("creation") {
  const auto refused_creation = [](const CalibratorOptions& options) {
    return argument_of(Calibrator::create(std::make_shared<test::ToyBackend>(), toy_model(), options).status());
  };
  CHECK(refused_creation({.layers_per_group = 0}) == "layers_per_group");
  CHECK(refused_creation({.groups = {{0, 0}}}) == "groups[0].layers[1]");
  CHECK(refused_creation({.groups = {{0}, {3}}}) == "groups[1].layers[0]");
  CHECK(refused_creation({.skip_tokens = -1}) == "skip_tokens");
}

TEST_CASE("shapes that are not the model's") {
  CHECK(refused_argument([](Views& views) { views.keys.pop_back(); }) == "keys");
  CHECK(refused_argument([](Views& views) { views.keys.clear(); }) == "keys");
  CHECK(refused_argument([](Views& views) { views.values.push_back(views.values[0]); }) == "values");
  CHECK(refused_argument([](Views& views) { views.keys[1].data = nullptr; }) == "keys[1]");
  CHECK(refused_argument([](Views& views) { views.values[2].data = nullptr; }) == "values[2]");
  CHECK(refused_argument([](Views& views) { views.keys[2].column_count = 3; }) == "keys[2]");
  CHECK(refused_argument([](Views& views) { views.keys[2].row_count = 9; }) == "keys[2]");
  CHECK(refused_argument([](Views& views) { views.values[0].row_count = 9; }) == "values[0]");
  CHECK(refused_argument([](Views& views) {
          for (auto* layers : {&views.keys, &views.values}) {
            for (TensorView& view : *layers) view.row_count = 0;
          }
        }) == "keys[0]");
  CHECK(refused_argument([](Views&) {}, -1) == "first_token");
  CHECK(refused_argument([](Views&) {}, std::numeric_limits<int64_t>::max()) == "first_token");
}

TEST_CASE("numbers that are not finite, in any layer and in tokens that are left out too") {
  for (float bad : {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    for (size_t layer = 0; layer < kLayers; ++layer) {
      for (size_t at : {size_t{0}, size_t{10 * kWidth - 1}}) {
        for (bool key : {true, false}) {
          test::SampleText text(kLayers, 10, kWidth, 2);
          (key ? text.keys : text.values)[layer][at] = bad;
          const Status status = refused(
              [&](Calibrator& calibrator) { return calibrator.observe(text.key_views(), text.value_views(), 0); });
          CHECK(status.code() == absl::StatusCode::kUnknown);
          CHECK(argument_of(status) == absl::StrCat(key ? "keys[" : "values[", layer, "]"));
        }
      }
    }
  }
}

TEST_CASE("too few rows") {
  const std::shared_ptr<Calibrator> calibrator = toy_calibrator();
  CHECK(calibrator->solve({}).status().code() == absl::StatusCode::kFailedPrecondition);
  add_text(*calibrator, 5);
  const Status status = calibrator->solve({}).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(status.message()).find("got 1 ") != std::string::npos);
  CHECK(std::string(status.message()).find("expected 2 ") != std::string::npos);
  const std::shared_ptr<Calibrator> enough = toy_calibrator();
  add_text(*enough, 6);
  CHECK(enough->solve({}).ok());
}

TEST_CASE("a metric without gradients") {
  const std::shared_ptr<Calibrator> calibrator = toy_calibrator();
  add_text(*calibrator);
  SolveOptions options;
  options.use_metric = true;
  const Status status = calibrator->solve(options).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(status.message()).find("gradients") != std::string::npos);
}

TEST_CASE("options of solve") {
  const auto argument = [](const SolveOptions& options) {
    return argument_of(refused([&](Calibrator& calibrator) { return calibrator.solve(options).status(); }));
  };
  CHECK(argument({.bits = 1}) == "bits");
  CHECK(argument({.key_bands = {{3, 11}}}) == "key_bands[0].bits");
  CHECK(argument({.correction = {.rank = 5}}) == "correction_rank");  // the second group has 4 coordinates
}

TEST_CASE("calibrators that do not belong together") {
  const auto code = [](const std::shared_ptr<Calibrator>& other) {
    add_text(*other);
    return refused([&](Calibrator& calibrator) { return calibrator.merge(*other); }).code();
  };
  const CalibratorOptions options = {.layers_per_group = 2};
  CHECK(code(toy_calibrator({.layers_per_group = 3})) == absl::StatusCode::kAborted);
  CHECK(code(toy_calibrator({.layers_per_group = 2, .skip_tokens = 5})) == absl::StatusCode::kAborted);
  CHECK(code(toy_calibrator(options, toy_model([](ModelDescription& model) { model.layers[1].soft_cap = 3.0; }))) ==
        absl::StatusCode::kAborted);
  CHECK(code(toy_calibrator(options, toy_model([](ModelDescription& model) { model.name = "another"; }))) ==
        absl::StatusCode::kAborted);
  CHECK(refused([](Calibrator& calibrator) { return calibrator.merge(calibrator); }).code() ==
        absl::StatusCode::kInvalidArgument);
  const std::shared_ptr<Calibrator> unnamed =
      toy_calibrator(options, toy_model([](ModelDescription& model) { model.name.clear(); }));
  CHECK(toy_calibrator()->merge(*unnamed).ok());
}

TEST_CASE("after a failure of the backend nothing is taken for whole") {
  const auto backend = std::make_shared<test::ToyBackend>();
  const std::shared_ptr<Calibrator> calibrator =
      Calibrator::create(backend, toy_model(), {.layers_per_group = 2}).value();
  add_text(*calibrator);
  backend->fail_after(2);  // some groups are counted, others not
  const test::SampleText text(kLayers, kTokens, kWidth, 5);
  CHECK(native_code_of(calibrator->observe(text.key_views(), text.value_views(), 0)) == 17);
  backend->fail_after(-1);
  CHECK(native_code_of(calibrator->observe(text.key_views(), text.value_views(), 0)) == 17);
  CHECK(native_code_of(calibrator->solve({}).status()) == 17);
  CHECK(native_code_of(toy_calibrator()->merge(*calibrator)) == 17);
  CHECK(native_code_of(calibrator->merge(*toy_calibrator())) == 17);
}

TEST_CASE("a failure while solving leaves the sums alone") {
  const auto backend = std::make_shared<test::ToyBackend>();
  const std::shared_ptr<Calibrator> calibrator =
      Calibrator::create(backend, toy_model(), {.layers_per_group = 2}).value();
  add_text(*calibrator);
  const uint64_t before = calibrator->solve({}).value().fingerprint;
  backend->fail_after(0);
  CHECK(native_code_of(calibrator->solve({}).status()) == 17);
  backend->fail_after(-1);
  CHECK(calibrator->solve({}).value().fingerprint == before);
}

}  // namespace
}  // namespace foldkv
