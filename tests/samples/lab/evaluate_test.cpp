#include "samples/lab/evaluate.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/calibrate.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv_lab::test {
namespace {

struct Laboratory {
  Model model = random_model(small_shape("qwen2"), 9, 20);
  ThreadPool threads{2};
  std::unique_ptr<FoldkvHost> host;
  std::vector<TextSample> windows;

  Laboratory() {
    FoldkvHostOptions options;
    options.budget_bytes = uint64_t{64} << 20;
    auto created = FoldkvHost::create(model, "test", options, threads);
    REQUIRE_MESSAGE(created.ok(), created.status().message());
    host = std::move(created).value();
    foldkv::test::Random random(10);
    for (const char* name : {"one", "one", "two"}) {
      windows.push_back({name, {}});
      for (int i = 0; i < 160; ++i) windows.back().tokens.push_back(static_cast<Token>(random.between(0, 261)));
    }
  }
};

EvaluationOptions options_for(int32_t dtype) {
  EvaluationOptions options;
  options.prefix = 128;
  options.attention.sequence.dtype = dtype;
  options.attention.sequence.recent_tokens = 16;
  options.attention.sequence.fold_tokens = -1;
  return options;
}

TEST_CASE("an exact cache loses nothing") {
  Laboratory lab;
  const auto result = evaluate(*lab.host, nullptr, lab.windows, options_for(FOLDKV_F32), [](int64_t) {});
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  CHECK(result->all.kl < 1e-9);
  CHECK(result->all.kl > -1e-9);
  CHECK(result->all.top1_agreement == 1.0);
  CHECK(std::abs(result->all.loss_difference()) < 1e-5);
  CHECK(result->all.full_perplexity() > 1);
  CHECK(result->all.windows == 3);
  CHECK(result->all.positions == 96);
  REQUIRE(result->texts.size() == 2);
  CHECK(result->texts[0].first == "one");
  CHECK(result->texts[0].second.windows == 2);
}

TEST_CASE("fewer bits lose more, and all bytes are counted") {
  Laboratory lab;
  double last_kl = 0;
  for (const int32_t bits : {8, 3}) {
    CalibrationOptions calibration;
    calibration.calibrator.layers_per_group = 3;
    calibration.solve.latent_width = 48;  // full rank: 3 layers of 16
    calibration.solve.bits = bits;
    const auto profile = calibrate(*lab.host, lab.windows, calibration, [](int64_t) {});
    REQUIRE_MESSAGE(profile.ok(), profile.status().message());
    int64_t windows_done = 0;
    const auto result = evaluate(*lab.host, &*profile, lab.windows, options_for(FOLDKV_F16),
                                 [&](int64_t done) { windows_done = done; });
    REQUIRE_MESSAGE(result.ok(), result.status().message());
    CHECK(windows_done == 3);
    CHECK(result->all.kl > last_kl);
    last_kl = result->all.kl;
    const foldkv_sequence_stats& after_prefix = result->bytes.after_prefix;
    CHECK(after_prefix.tokens == 128);
    CHECK(after_prefix.latent_tokens == 128 - 4 - 16);
    CHECK(after_prefix.exact_tokens == 20);
    CHECK(after_prefix.full_token_bytes == static_cast<uint64_t>(lab.model.shape.full_token_bytes()));
    CHECK(after_prefix.grouped_token_bytes == after_prefix.full_token_bytes);
    // 48 codes and one 16-bit scale, for keys and for values.
    CHECK(after_prefix.latent_token_bytes == static_cast<uint64_t>(2 * (48 * bits / 8 + 2)));
    // What was fed afterwards stays exact.
    CHECK(result->bytes.after_window.tokens == 160);
    CHECK(result->bytes.after_window.latent_tokens == after_prefix.latent_tokens);
    CHECK(result->bytes.after_window.bytes > after_prefix.bytes);
  }
}

TEST_CASE("larger steps give the same figures") {
  Laboratory lab;
  CalibrationOptions calibration;
  const auto profile = calibrate(*lab.host, lab.windows, calibration, [](int64_t) {});
  REQUIRE_MESSAGE(profile.ok(), profile.status().message());
  EvaluationOptions options = options_for(FOLDKV_F16);
  const auto one = evaluate(*lab.host, &*profile, lab.windows, options, [](int64_t) {});
  options.feed = 10;
  const auto ten = evaluate(*lab.host, &*profile, lab.windows, options, [](int64_t) {});
  REQUIRE(one.ok());
  REQUIRE(ten.ok());
  CHECK(ten->all.kl == doctest::Approx(one->all.kl).epsilon(1e-3));
}

TEST_CASE("windows that cannot be evaluated") {
  Laboratory lab;
  EvaluationOptions options = options_for(FOLDKV_F16);
  options.prefix = 160;
  CHECK_FALSE(evaluate(*lab.host, nullptr, lab.windows, options, [](int64_t) {}).ok());
  options.prefix = 100;
  CHECK_FALSE(evaluate(*lab.host, nullptr, {}, options, [](int64_t) {}).ok());
  lab.windows[1].tokens.pop_back();
  CHECK_FALSE(evaluate(*lab.host, nullptr, lab.windows, options, [](int64_t) {}).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
