#include "samples/lab/evaluate.h"

#include <cmath>
#include <memory>
#include <string>
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

EvaluationOptions options() {
  EvaluationOptions options;
  options.prefix = 128;
  return options;
}

Codec codec(const std::string& name, const foldkv::Profile* profile, int32_t dtype) {
  Codec codec{name, profile, {}};
  codec.options.sequence.dtype = dtype;
  codec.options.sequence.recent_tokens = 16;
  codec.options.sequence.fold_tokens = -1;
  return codec;
}

foldkv::Profile profile_of(Laboratory& lab, int32_t bits) {
  CalibrationOptions calibration;
  calibration.calibrator.layers_per_group = 3;
  calibration.solve.latent_width = 48;  // full rank: 3 layers of 16
  calibration.solve.bits = bits;
  auto profile = calibrate(*lab.host, lab.windows, calibration, [](int64_t) {});
  REQUIRE_MESSAGE(profile.ok(), profile.status().message());
  return std::move(profile).value();
}

Evaluation evaluate_well(Laboratory& lab, const std::vector<Codec>& codecs, const EvaluationOptions& options) {
  auto result = evaluate(*lab.host, codecs, lab.windows, options, [](int64_t) {});
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  REQUIRE(result->codecs.size() == codecs.size());
  return std::move(result).value();
}

TEST_CASE("an exact cache loses nothing") {
  Laboratory lab;
  const Evaluation result = evaluate_well(lab, {codec("exact", nullptr, FOLDKV_F32)}, options());
  const CodecEvaluation& exact = result.codecs[0];
  CHECK(exact.codec == "exact");
  CHECK(exact.all.kl < 1e-9);
  CHECK(exact.all.kl > -1e-9);
  CHECK(exact.all.top1_agreement == 1.0);
  CHECK(std::abs(exact.all.loss_difference()) < 1e-5);
  CHECK(exact.all.full_perplexity() > 1);
  CHECK(exact.all.windows == 3);
  CHECK(exact.all.positions == 96);
  REQUIRE(exact.texts.size() == 2);
  CHECK(exact.texts[0].first == "one");
  CHECK(exact.texts[0].second.windows == 2);
}

TEST_CASE("fewer bits lose more, and all bytes are counted") {
  Laboratory lab;
  double last_kl = 0;
  for (const int32_t bits : {8, 3}) {
    const foldkv::Profile profile = profile_of(lab, bits);
    int64_t runs_done = 0;
    const auto result = evaluate(*lab.host, {codec("latents", &profile, FOLDKV_F16)}, lab.windows, options(),
                                 [&](int64_t done) { runs_done = done; });
    REQUIRE_MESSAGE(result.ok(), result.status().message());
    CHECK(runs_done == 3);
    const CodecEvaluation& latents = result->codecs[0];
    CHECK(latents.all.kl > last_kl);
    last_kl = latents.all.kl;
    const EvaluationFigures& one = latents.texts[0].second;
    REQUIRE(one.window_kl.size() == 2);
    CHECK((one.window_kl[0] + one.window_kl[1]) / 2 == doctest::Approx(one.kl));
    CHECK(latents.all.window_kl.size() == 3);
    CHECK(latents.all.window_kl[2] == latents.texts[1].second.kl);
    const foldkv_sequence_stats& after_prefix = latents.bytes.after_prefix;
    CHECK(after_prefix.tokens == 128);
    CHECK(after_prefix.latent_tokens == 128 - 4 - 16);
    CHECK(after_prefix.exact_tokens == 20);
    CHECK(after_prefix.full_token_bytes == static_cast<uint64_t>(lab.model.shape.full_token_bytes()));
    CHECK(after_prefix.grouped_token_bytes == after_prefix.full_token_bytes);
    // 48 codes and one 16-bit scale, for keys and for values.
    CHECK(after_prefix.latent_token_bytes == static_cast<uint64_t>(2 * (48 * bits / 8 + 2)));
    // What was fed afterwards stays exact.
    CHECK(latents.bytes.after_window.tokens == 160);
    CHECK(latents.bytes.after_window.latent_tokens == after_prefix.latent_tokens);
    CHECK(latents.bytes.after_window.bytes > after_prefix.bytes);
  }
}

void check_equal(const EvaluationFigures& one, const EvaluationFigures& other) {
  CHECK(one.windows == other.windows);
  CHECK(one.positions == other.positions);
  CHECK(one.kl == other.kl);
  CHECK(one.top1_agreement == other.top1_agreement);
  CHECK(one.full_loss == other.full_loss);
  CHECK(one.compressed_loss == other.compressed_loss);
}

TEST_CASE("codecs in one run give what each gives alone, bit for bit") {
  Laboratory lab;
  const foldkv::Profile fine = profile_of(lab, 8);
  const foldkv::Profile coarse = profile_of(lab, 3);
  const std::vector<Codec> codecs = {codec("coarse", &coarse, FOLDKV_F16), codec("exact", nullptr, FOLDKV_F16),
                                     codec("fine", &fine, FOLDKV_F16)};
  const Evaluation together = evaluate_well(lab, codecs, options());
  for (size_t i = 0; i < codecs.size(); ++i) {
    CAPTURE(codecs[i].name);
    const CodecEvaluation& here = together.codecs[i];
    const Evaluation single = evaluate_well(lab, {codecs[i]}, options());
    const CodecEvaluation& alone = single.codecs[0];
    CHECK(here.codec == codecs[i].name);
    check_equal(here.all, alone.all);
    REQUIRE(here.texts.size() == alone.texts.size());
    for (size_t text = 0; text < here.texts.size(); ++text) {
      CHECK(here.texts[text].first == alone.texts[text].first);
      check_equal(here.texts[text].second, alone.texts[text].second);
    }
    CHECK(here.bytes.after_prefix.bytes == alone.bytes.after_prefix.bytes);
    CHECK(here.bytes.after_window.bytes == alone.bytes.after_window.bytes);
  }
}

TEST_CASE("larger steps give the same figures") {
  Laboratory lab;
  const foldkv::Profile profile = profile_of(lab, 4);
  const std::vector<Codec> codecs = {codec("latents", &profile, FOLDKV_F16)};
  EvaluationOptions by_ten = options();
  by_ten.feed = 10;
  CHECK(evaluate_well(lab, codecs, by_ten).codecs[0].all.kl ==
        doctest::Approx(evaluate_well(lab, codecs, options()).codecs[0].all.kl).epsilon(1e-3));
}

TEST_CASE("what cannot be evaluated") {
  Laboratory lab;
  const std::vector<Codec> codecs = {codec("exact", nullptr, FOLDKV_F16)};
  const auto refused = [&](const std::vector<Codec>& given, const EvaluationOptions& how) {
    const auto result = evaluate(*lab.host, given, lab.windows, how, [](int64_t) {});
    REQUIRE_FALSE(result.ok());
    return std::string(result.status().message());
  };
  EvaluationOptions no_rest = options();
  no_rest.prefix = 160;
  CHECK(refused(codecs, no_rest).find("prefix of 160") != std::string::npos);
  CHECK(refused({}, options()).find("no codec") != std::string::npos);
  CHECK(refused({codecs[0], codecs[0]}, options()).find("\"exact\"") != std::string::npos);
  lab.windows[1].tokens.pop_back();
  CHECK(refused(codecs, options()).find("length") != std::string::npos);
  lab.windows.clear();
  CHECK(refused(codecs, options()).find("no window") != std::string::npos);
}

}  // namespace
}  // namespace foldkv_lab::test
