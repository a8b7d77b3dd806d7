#include "samples/lab/evaluate_task.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/answer.h"
#include "samples/lab/calibrate.h"
#include "samples/lab/full_attention.h"
#include "samples/lab/generate.h"
#include "tests/samples/lab/stories.h"

namespace foldkv_lab::test {
namespace {

Codec codec(const std::string& name, const foldkv::Profile* profile, int32_t dtype) {
  Codec codec{name, profile, {}};
  codec.options.sequence.dtype = dtype;
  codec.options.sequence.recent_tokens = 16;
  codec.options.sequence.fold_tokens = -1;
  return codec;
}

struct Examination {
  LanguageModel model = load_stories();
  ThreadPool threads{2};
  std::unique_ptr<FoldkvHost> host;

  Examination() {
    FoldkvHostOptions options;
    options.budget_bytes = uint64_t{64} << 20;
    auto created = FoldkvHost::create(model.model, "test", options, threads);
    REQUIRE_MESSAGE(created.ok(), created.status().message());
    host = std::move(created).value();
  }

  // A story to be told on: what the model says itself is right.
  [[nodiscard]] TaskTrial trial(const std::string& beginning, int64_t answer_tokens) {
    TaskTrial trial;
    trial.context = *model.tokenizer->encode_prompt(beginning);
    trial.question = *model.tokenizer->encode(" One day,");
    std::vector<Token> prompt = trial.context;
    prompt.insert(prompt.end(), trial.question.begin(), trial.question.end());
    trial.answer = greedy(prompt, answer_tokens);
    return trial;
  }

  [[nodiscard]] std::vector<Token> greedy(const std::vector<Token>& prompt, int64_t tokens) {
    FullAttention attention(model.model, CacheFormat::kF32, 512, threads);
    Decoder decoder(model.model, attention, threads);
    Sampler sampler(0, 0);
    const auto written = generate(decoder, *model.tokenizer, prompt, {tokens}, sampler, [](const std::string&) {});
    REQUIRE(written.ok());
    REQUIRE(static_cast<int64_t>(written->tokens.size()) == tokens);
    return written->tokens;
  }

  [[nodiscard]] std::vector<TaskTrial> trials() {
    const std::string twice = kStoriesText + ". " + kStoriesText + ". ";
    return {trial(kStoriesText + ".", 12), trial(twice + "Tom had a dog.", 12), trial(twice + twice, 8)};
  }

  [[nodiscard]] TaskEvaluation evaluate(const std::vector<Codec>& codecs, const std::vector<TaskTrial>& trials) {
    auto result = evaluate_task(*host, codecs, *model.tokenizer, "story", trials, [](int64_t) {});
    REQUIRE_MESSAGE(result.ok(), result.status().message());
    return std::move(result).value();
  }
};

TEST_CASE("greedy decoding after a wrong token goes on from the wrong token") {
  Examination examination;
  TaskTrial trial = examination.trial(kStoriesText + ".", 12);
  const std::vector<Token> written = trial.answer;
  FullAttention attention(examination.model.model, CacheFormat::kF32, 512, examination.threads);
  CacheRun run(examination.model.model, attention, examination.threads);
  for (const size_t wrong : {size_t{0}, size_t{5}, size_t{11}}) {
    CAPTURE(wrong);
    trial.answer = written;
    trial.answer[wrong] = (written[wrong] + 1) % 512;
    REQUIRE(run.begin(trial.context).ok());
    const auto answer = answer_trial(run, trial);
    REQUIRE_MESSAGE(answer.ok(), answer.status().message());
    CHECK(answer->tokens == written);
    CHECK(answer->logits.size() == 12 * static_cast<size_t>(examination.model.model.shape.vocabulary_size));
    CHECK(score_answer(trial, answer->tokens, *examination.model.tokenizer) == doctest::Approx(11.0 / 12));
  }
}

TEST_CASE("an exact cache keeps all answers") {
  Examination examination;
  const std::vector<TaskTrial> trials = examination.trials();
  const TaskEvaluation result = examination.evaluate({codec("exact", nullptr, FOLDKV_F32)}, trials);
  CHECK(result.task == "story");
  CHECK(result.trials == 3);
  CHECK(result.usable());
  CHECK(result.full.mean == 1.0);
  CHECK(result.full.low == 1.0);
  CHECK(result.codecs[0].retention == 1.0);
  CHECK(result.codecs[0].score.mean == 1.0);
  CHECK(std::abs(result.codecs[0].kl) < 1e-9);
  CHECK(result.codecs[0].ratio == doctest::Approx(0.5).epsilon(0.05));  // 32-bit numbers
}

TEST_CASE("codecs in one run give what each gives alone, bit for bit") {
  Examination examination;
  const std::vector<TaskTrial> trials = examination.trials();
  CalibrationOptions calibration;
  calibration.solve.bits = 2;
  std::vector<TextSample> samples;
  for (const TaskTrial& trial : trials) samples.push_back({"story", trial.context});
  const auto profile = calibrate(*examination.host, samples, calibration, [](int64_t) {});
  REQUIRE_MESSAGE(profile.ok(), profile.status().message());
  const std::vector<Codec> codecs = {codec("coarse", &*profile, FOLDKV_F16), codec("exact", nullptr, FOLDKV_F16)};
  const TaskEvaluation together = examination.evaluate(codecs, trials);
  CHECK(together.codecs[0].kl > together.codecs[1].kl);
  CHECK(together.codecs[0].ratio > 1);
  for (size_t i = 0; i < codecs.size(); ++i) {
    CAPTURE(codecs[i].name);
    const TaskEvaluation single = examination.evaluate({codecs[i]}, trials);
    CHECK(together.full.mean == single.full.mean);
    CHECK(together.codecs[i].score.mean == single.codecs[0].score.mean);
    CHECK(together.codecs[i].score.low == single.codecs[0].score.low);
    CHECK(together.codecs[i].kl == single.codecs[0].kl);
    CHECK(together.codecs[i].ratio == single.codecs[0].ratio);
  }
}

TEST_CASE("what cannot be asked") {
  Examination examination;
  const auto refused = [&](const std::vector<Codec>& codecs, const std::vector<TaskTrial>& trials) {
    return std::string(
        evaluate_task(*examination.host, codecs, *examination.model.tokenizer, "story", trials, [](int64_t) {})
            .status()
            .message());
  };
  CHECK(refused({}, examination.trials()).find("no codec") != std::string::npos);
  CHECK(refused({codec("exact", nullptr, FOLDKV_F16)}, {}).find("task story has no trials") != std::string::npos);
}

}  // namespace
}  // namespace foldkv_lab::test
