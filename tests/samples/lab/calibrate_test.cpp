#include "samples/lab/calibrate.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/checkpoint.h"
#include "tests/samples/lab/small_models.h"
#include "tests/support/data.h"

namespace foldkv_lab::test {
namespace {

struct Bench {
  Model model = random_model(small_shape("llama"), 11, 0);
  ThreadPool threads{1};
  std::unique_ptr<FoldkvHost> host;
  std::vector<TextSample> samples;
  foldkv::test::TemporaryFolder folder;

  Bench() {
    FoldkvHostOptions options;
    options.budget_bytes = uint64_t{64} << 20;
    auto created = FoldkvHost::create(model, "small llama", options, threads);
    REQUIRE_MESSAGE(created.ok(), created.status().message());
    host = std::move(created).value();
    foldkv::test::Random random(12);
    for (int sample = 0; sample < 5; ++sample) {
      samples.push_back({"text", {}});
      for (int i = 0; i < 60; ++i) samples.back().tokens.push_back(static_cast<Token>(random.between(0, 261)));
    }
  }

  [[nodiscard]] CalibrationOptions options(const std::string& checkpoint = "") const {
    CalibrationOptions options;
    options.calibrator.layers_per_group = 2;
    options.gradients = true;
    options.checkpoint_samples = 2;
    if (!checkpoint.empty()) options.checkpoint = (folder.path() / checkpoint).string();
    return options;
  }
  [[nodiscard]] std::vector<std::byte> sums(const std::vector<TextSample>& texts, const CalibrationOptions& options,
                                            int64_t* first_progress = nullptr) {
    int64_t first = -1;
    const auto calibrator = observe_samples(*host, texts, options, [&](int64_t done) {
      if (first < 0) first = done;
    });
    REQUIRE_MESSAGE(calibrator.ok(), calibrator.status().message());
    if (first_progress != nullptr) *first_progress = first;
    return *calibrator->save();
  }
  [[nodiscard]] std::vector<TextSample> first(size_t count) const {
    return {samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count)};
  }
};

TEST_CASE("a calibration that stopped goes on from its checkpoint, bit for bit") {
  Bench bench;
  const std::vector<std::byte> whole = bench.sums(bench.samples, bench.options());
  const CalibrationOptions options = bench.options("checkpoint");
  (void)bench.sums(bench.first(3), options);
  int64_t first_progress = 0;
  CHECK(bench.sums(bench.samples, options, &first_progress) == whole);
  CHECK(first_progress > 3 * 60);
  // All is counted: nothing is run.
  CHECK(bench.sums(bench.samples, options, &first_progress) == whole);
  CHECK(first_progress == -1);
}

TEST_CASE("a checkpoint of something else is refused") {
  Bench bench;
  const CalibrationOptions options = bench.options("checkpoint");
  (void)bench.sums(bench.first(3), options);
  const auto refused = [&](const std::vector<TextSample>& samples, const CalibrationOptions& changed) {
    const auto calibrator = observe_samples(*bench.host, samples, changed, [](int64_t) {});
    CHECK_FALSE(calibrator.ok());
    return std::string(calibrator.status().message());
  };
  std::vector<TextSample> others = bench.samples;
  others[1].tokens[5] ^= 1;
  CHECK(refused(others, options).find("not the first") != std::string::npos);
  CHECK(refused(bench.first(2), options).find("counted 3 samples") != std::string::npos);
  CalibrationOptions changed = options;
  changed.gradients = false;
  CHECK(refused(bench.samples, changed).find("gradients differ") != std::string::npos);
  changed = options;
  changed.calibrator.layers_per_group = 3;
  CHECK(refused(bench.samples, changed).find("FOLDKV_E_MISMATCH") != std::string::npos);
}

TEST_CASE("checkpoints of two processes are added") {
  Bench bench;
  const std::vector<TextSample> rest(bench.samples.begin() + 3, bench.samples.end());
  (void)bench.sums(bench.first(3), bench.options("one"));
  (void)bench.sums(rest, bench.options("two"));
  const auto merged = load_checkpoints(
      *bench.host, {bench.options("one").checkpoint, bench.options("two").checkpoint}, bench.options());
  REQUIRE_MESSAGE(merged.ok(), merged.status().message());
  CHECK(merged->info()->samples == 5);
  CHECK(merged->info()->rows == 5 * 56);
  CalibrationOptions options = bench.options();
  options.gradients = false;  // whose labels depend on what came before in a process
  const auto got = solve_profile(*merged, options);
  const auto expected = calibrate(*bench.host, bench.samples, options, [](int64_t) {});
  REQUIRE(got.ok());
  REQUIRE(expected.ok());
  const std::vector<double> variances = *expected->variances(0, FOLDKV_KEYS);
  for (size_t i = 0; i < variances.size(); ++i) {
    CHECK((*got->variances(0, FOLDKV_KEYS))[i] == doctest::Approx(variances[i]).epsilon(1e-9));
  }
}

TEST_CASE("options of solve are refused before the first sample runs") {
  Bench bench;
  CalibrationOptions options = bench.options();
  options.solve.bits = 77;
  int64_t called = 0;
  const auto calibrator = observe_samples(*bench.host, bench.samples, options, [&](int64_t) { ++called; });
  CHECK_FALSE(calibrator.ok());
  CHECK(std::string(calibrator.status().message()).find("FOLDKV_E_ARGUMENT options.bits: got 77") != std::string::npos);
  CHECK(called == 0);
}

}  // namespace
}  // namespace foldkv_lab::test
