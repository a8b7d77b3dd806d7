#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/calibrator.h"
#include "runtime/profile/calibration_reader.h"
#include "runtime/profile/calibration_writer.h"
#include "tests/runtime/calibration/sample_text.h"
#include "tests/runtime/calibration/toy_backend.h"

namespace foldkv {
namespace {

// Groups of two layers and of one.
constexpr int64_t kLayers = 3;
constexpr int64_t kWidth = 4;

std::shared_ptr<Model> toy_model(const std::string& name = "toy", int64_t kv_heads = 2) {
  ModelDescription description = test::plain_description(kLayers, kv_heads, 2);
  description.name = name;
  return Model::create(description).value();
}

std::shared_ptr<Calibrator> toy_calibrator() {
  return Calibrator::create(std::make_shared<test::ToyBackend>(), toy_model(), {.layers_per_group = 2, .skip_tokens = 2})
      .value();
}

void add(Calibrator& calibrator, uint32_t seed, int64_t tokens, bool gradients = false) {
  const test::SampleText text(kLayers, tokens, kWidth, seed);
  const Status status = gradients ? calibrator.observe_gradients(text.key_views(), text.value_views(), 0)
                                  : calibrator.observe(text.key_views(), text.value_views(), 0);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
}

std::vector<uint8_t> saved(const Calibrator& calibrator) {
  return write_calibration(calibrator.content().value()).value();
}

StatusOr<std::shared_ptr<Calibrator>> restored(const CalibrationContent& content,
                                               const std::shared_ptr<Model>& model = toy_model()) {
  return Calibrator::restore(std::make_shared<test::ToyBackend>(), model, content);
}

std::shared_ptr<Calibrator> reloaded(const Calibrator& calibrator) {
  const std::vector<uint8_t> bytes = saved(calibrator);
  return restored(read_calibration(bytes.data(), bytes.size()).value()).value();
}

// Rows that fill blocks of 256 or not, with gradients before, after or not at all.
TEST_CASE("what is observed after loading gives the bits of one run") {
  for (int64_t first : {3, 150, 258, 700}) {
    for (const bool gradients : {false, true}) {
      CAPTURE(first);
      CAPTURE(gradients);
      const std::shared_ptr<Calibrator> whole = toy_calibrator();
      const std::shared_ptr<Calibrator> begun = toy_calibrator();
      for (Calibrator* calibrator : {whole.get(), begun.get()}) {
        add(*calibrator, 1, first);
        if (gradients) add(*calibrator, 2, first / 2, true);
      }
      const std::shared_ptr<Calibrator> resumed = reloaded(*begun);
      CHECK(saved(*resumed) == saved(*begun));
      CHECK(resumed->sample_count() == 1);
      CHECK(resumed->row_count() == first - 2);
      CHECK(resumed->skip_tokens() == 2);
      CHECK(resumed->groups() == whole->groups());
      for (Calibrator* calibrator : {whole.get(), resumed.get()}) {
        add(*calibrator, 3, 333);
        add(*calibrator, 4, 200, true);
      }
      CHECK(saved(*resumed) == saved(*whole));
      const SolveOptions options = {.latent_width = 8, .use_metric = true};
      CHECK(resumed->solve(options).value().fingerprint == whole->solve(options).value().fingerprint);
    }
  }
}

TEST_CASE("loading into an empty calibrator by merging keeps every bit") {
  const std::shared_ptr<Calibrator> begun = toy_calibrator();
  add(*begun, 1, 700);
  add(*begun, 2, 300, true);
  const std::shared_ptr<Calibrator> empty = toy_calibrator();
  REQUIRE(empty->merge(*reloaded(*begun)).ok());
  CHECK(saved(*empty) == saved(*begun));
}

TEST_CASE("files of two processes merged are one that has observed all") {
  const std::shared_ptr<Calibrator> whole = toy_calibrator();
  std::vector<std::shared_ptr<Calibrator>> parts;
  for (uint32_t part = 0; part < 2; ++part) {
    parts.push_back(toy_calibrator());
    for (Calibrator* calibrator : {whole.get(), parts.back().get()}) {
      add(*calibrator, part, 400 + part);
      add(*calibrator, part + 5, 100, true);
    }
  }
  const std::shared_ptr<Calibrator> merged = reloaded(*parts[0]);
  REQUIRE(merged->merge(*reloaded(*parts[1])).ok());
  CHECK(merged->sample_count() == 2);
  CHECK(merged->row_count() == whole->row_count());
  CHECK(merged->gradient_row_count() == whole->gradient_row_count());
  const SolveOptions options = {.latent_width = 8, .use_metric = true};
  const Profile got = merged->solve(options).value();
  const Profile expected = whole->solve(options).value();
  for (size_t group = 0; group < 2; ++group) {
    const std::vector<double>& variances = expected.groups[group].values.variances;
    for (size_t at = 0; at < variances.size(); ++at) {
      CHECK(got.groups[group].values.variances[at] == doctest::Approx(variances[at]).epsilon(1e-10));
    }
  }
}

TEST_CASE("sums of another model are refused") {
  const std::shared_ptr<Calibrator> calibrator = toy_calibrator();
  add(*calibrator, 1, 300);
  const CalibrationContent content = calibrator->content().value();
  CHECK(restored(content, toy_model("other")).status().code() == absl::StatusCode::kAborted);
  CHECK(restored(content, toy_model("toy", 4)).status().code() == absl::StatusCode::kAborted);
  CHECK(restored(content, toy_model("")).ok());
}

TEST_CASE("sums that fit no calibrator of the model are corrupt") {
  const std::shared_ptr<Calibrator> calibrator = toy_calibrator();
  add(*calibrator, 1, 300);
  add(*calibrator, 1, 300, true);
  const auto refused = [&](const std::function<void(CalibrationContent&)>& change) {
    CalibrationContent content = calibrator->content().value();
    change(content);
    const Status status = restored(content).status();
    CHECK_MESSAGE(status.code() == absl::StatusCode::kDataLoss, status.ToString());
  };
  refused([](CalibrationContent& content) { content.groups[0].layers = {}; });
  refused([](CalibrationContent& content) { content.groups[0].layers = {0, 7}; });
  refused([](CalibrationContent& content) { content.groups[0].layers = {-1, 0}; });
  refused([](CalibrationContent& content) { content.groups[0].layers = {1, 0}; });
  refused([](CalibrationContent& content) { content.groups[0].layers = {0, 2}; });  // as the next group
  refused([](CalibrationContent& content) { content.groups[0].layers = {0, 1, 2}; });
  refused([](CalibrationContent& content) { std::swap(content.groups[0], content.groups[1]); });
  refused([](CalibrationContent& content) { std::swap(content.groups[0].values, content.groups[1].values); });
  refused([](CalibrationContent& content) { content.groups[1].values.count += 1; });
  refused([](CalibrationContent& content) { content.groups[0].key_gradients[1].count += 1; });
  refused([](CalibrationContent& content) { content.groups[1].key_gradients[0].sum.resize(1); });
  refused([](CalibrationContent& content) {
    content.groups[0].keys.pending.resize(static_cast<size_t>(Moments::kBlockRows * 2 * kWidth));
  });
}

TEST_CASE("a calibrator whose backend failed is not saved") {
  const auto backend = std::make_shared<test::ToyBackend>();
  const std::shared_ptr<Calibrator> calibrator = Calibrator::create(backend, toy_model(), {}).value();
  backend->fail_after(0);
  const test::SampleText text(kLayers, 400, kWidth, 5);
  CHECK(native_code_of(calibrator->observe(text.key_views(), text.value_views(), 0)) == 17);
  CHECK(native_code_of(calibrator->content().status()) == 17);
}

}  // namespace
}  // namespace foldkv
