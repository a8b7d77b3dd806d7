#include "samples/lab/foldkv_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/calibrate.h"
#include "samples/lab/decoder.h"
#include "samples/lab/full_attention.h"
#include "samples/lab/generate.h"
#include "tests/samples/lab/small_models.h"
#include "tests/samples/lab/stories.h"

namespace foldkv_lab::test {
namespace {

std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (int32_t i = 0; i < foldkv_backend_count(); ++i) {
    const auto info = foldkv::backend(i);
    REQUIRE(info.ok());
    names.push_back(info->name);
  }
  return names;
}

std::unique_ptr<FoldkvHost> host_of(const Model& model, const std::string& backend, ThreadPool& threads) {
  FoldkvHostOptions options;
  options.backend = backend;
  options.budget_bytes = uint64_t{64} << 20;
  auto host = FoldkvHost::create(model, "test", options, threads);
  REQUIRE_MESSAGE(host.ok(), host.status().message());
  return std::move(host).value();
}

FoldkvAttention::Options exact_options(FoldkvInput input) {
  FoldkvAttention::Options options;
  options.input = input;
  options.sequence.dtype = FOLDKV_F32;
  return options;
}

std::unique_ptr<FoldkvAttention> attention_of(FoldkvHost& host, const foldkv::Profile* profile,
                                              const FoldkvAttention::Options& options) {
  auto attention = FoldkvAttention::create(host, profile, options);
  REQUIRE_MESSAGE(attention.ok(), attention.status().message());
  return std::move(attention).value();
}

std::string write(const LanguageModel& model, Attention& attention, ThreadPool& threads, int64_t tokens) {
  Decoder decoder(model.model, attention, threads);
  Sampler sampler(0, 0);
  const auto generation = generate(decoder, *model.tokenizer, {*model.tokenizer->begin_token()}, {tokens}, sampler,
                                   [](const std::string&) {});
  REQUIRE_MESSAGE(generation.ok(), generation.status().message());
  CHECK(static_cast<int64_t>(generation->tokens.size()) == tokens);
  return generation->text;
}

std::vector<float> logits_of(const Model& model, Attention& attention, ThreadPool& threads,
                             const std::vector<Token>& tokens, int64_t chunk) {
  Decoder decoder(model, attention, threads);
  std::vector<float> logits;
  const absl::Status status = decoder.feed(tokens, static_cast<int64_t>(tokens.size()), &logits, chunk);
  REQUIRE_MESSAGE(status.ok(), status.message());
  return logits;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

TEST_CASE("stories260K writes its known text with the full cache") {
  const LanguageModel model = load_stories();
  ThreadPool threads(2);
  for (const CacheFormat format : {CacheFormat::kF32, CacheFormat::kF16}) {
    FullAttention attention(model.model, format, 61, threads);
    CHECK(write(model, attention, threads, 60) == kStoriesText);
  }
}

TEST_CASE("stories260K writes its known text through FoldKV, by hidden states and by q, k, v") {
  const LanguageModel model = load_stories();
  ThreadPool threads(2);
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const std::unique_ptr<FoldkvHost> host = host_of(model.model, backend, threads);
    for (const FoldkvInput input : {FoldkvInput::kHidden, FoldkvInput::kQkv}) {
      const auto attention = attention_of(*host, nullptr, exact_options(input));
      CHECK(write(model, *attention, threads, 60) == kStoriesText);
    }
  }
}

// As long a text as the model was trained for.
std::vector<Token> story_tokens(const LanguageModel& model) {
  std::string text;
  while (text.size() < 3000) text += kStoriesText + ". ";
  std::vector<Token> tokens = *model.tokenizer->encode_prompt(text);
  REQUIRE(tokens.size() > 400);
  tokens.resize(400);
  return tokens;
}

TEST_CASE("logits through FoldKV with an exact cache agree with the full cache") {
  const LanguageModel model = load_stories();
  ThreadPool threads(2);
  const std::vector<Token> tokens = story_tokens(model);
  FullAttention full(model.model, CacheFormat::kF32, 400, threads);
  const std::vector<float> expected = logits_of(model.model, full, threads, tokens, 256);
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const std::unique_ptr<FoldkvHost> host = host_of(model.model, backend, threads);
    for (const FoldkvInput input : {FoldkvInput::kHidden, FoldkvInput::kQkv}) {
      for (const int64_t chunk : {1, 100, 400}) {
        CAPTURE(chunk);
        const auto attention = attention_of(*host, nullptr, exact_options(input));
        CHECK(largest_difference(logits_of(model.model, *attention, threads, tokens, chunk), expected) < 1e-4);
      }
    }
  }
}

TEST_CASE("a qwen2 shape with large key biases agrees too") {
  const Model model = random_model(small_shape("qwen2"), 7, 50);
  ThreadPool threads(2);
  foldkv::test::Random random(8);
  std::vector<Token> tokens;
  for (int i = 0; i < 200; ++i) tokens.push_back(static_cast<Token>(random.between(0, 261)));
  FullAttention full(model, CacheFormat::kF32, 200, threads);
  const std::vector<float> expected = logits_of(model, full, threads, tokens, 256);
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const std::unique_ptr<FoldkvHost> host = host_of(model, backend, threads);
    for (const FoldkvInput input : {FoldkvInput::kHidden, FoldkvInput::kQkv}) {
      const auto attention = attention_of(*host, nullptr, exact_options(input));
      CHECK(largest_difference(logits_of(model, *attention, threads, tokens, 50), expected) < 1e-4);
      REQUIRE(attention->clear().ok());
      CHECK(attention->token_count() == 0);
      CHECK(largest_difference(logits_of(model, *attention, threads, tokens, 200), expected) < 1e-4);
    }
  }
}

TEST_CASE("with latents of full rank at 8 bits the known text stands") {
  const LanguageModel model = load_stories();
  ThreadPool threads(2);
  std::vector<TextSample> samples(3);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].tokens = story_tokens(model);
    samples[i].tokens.erase(samples[i].tokens.begin() + 1, samples[i].tokens.begin() + 1 + static_cast<int64_t>(i));
  }
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const std::unique_ptr<FoldkvHost> host = host_of(model.model, backend, threads);
    CalibrationOptions calibration;
    calibration.calibrator.layers_per_group = 2;
    calibration.solve.latent_width = 64;  // two layers of 32
    calibration.solve.bits = 8;
    int64_t progress = 0;
    auto profile = calibrate(*host, samples, calibration, [&](int64_t done) { progress = done; });
    REQUIRE_MESSAGE(profile.ok(), profile.status().message());
    CHECK(progress == 400 + 399 + 398);
    FoldkvAttention::Options options = exact_options(FoldkvInput::kHidden);
    options.sequence.recent_tokens = 8;
    options.sequence.fold_tokens = 8;
    const auto attention = attention_of(*host, &*profile, options);
    CHECK(write(model, *attention, threads, 60) == kStoriesText);
    const auto stats = attention->stats();
    REQUIRE(stats.ok());
    CHECK(stats->latent_tokens >= 40);
    CHECK(stats->tokens == 60);
  }
}

TEST_CASE("a budget that is too small is an error, and the sequence goes on") {
  const LanguageModel model = load_stories();
  ThreadPool threads(1);
  FoldkvHostOptions options;
  options.budget_bytes = uint64_t{4} << 20;
  const auto host = FoldkvHost::create(model.model, "test", options, threads);
  REQUIRE(host.ok());
  const auto attention = attention_of(**host, nullptr, exact_options(FoldkvInput::kHidden));
  Decoder decoder(model.model, *attention, threads);
  std::vector<float> logits;
  const std::vector<Token> tokens = story_tokens(model);
  std::vector<Token> many;
  for (int i = 0; i < 20; ++i) many.insert(many.end(), tokens.begin(), tokens.end());
  REQUIRE(decoder.feed(tokens, 1, &logits, 400).ok());
  CHECK(decoder.feed(many, 1, &logits, 8000).code() == absl::StatusCode::kResourceExhausted);
  CHECK(attention->token_count() == 400);
  CHECK(decoder.feed(std::vector<Token>{5}, 1, &logits).ok());
  CHECK(attention->token_count() == 401);
}

}  // namespace
}  // namespace foldkv_lab::test
