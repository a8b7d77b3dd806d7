#include "samples/lab/task_trial.h"

#include <algorithm>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/samples/lab/stories.h"

namespace foldkv_lab::test {
namespace {

std::string long_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += kStoriesText +
            " for her. The old man gave the girl a red hat and then he went back to his house by the "
            "sea with all of his cats. ";
  }
  return text;
}

class Draws {
 public:
  Draws() : haystack_(*Haystack::create({long_text()}, *model_.tokenizer)) {}

  [[nodiscard]] const Tokenizer& tokenizer() const { return *model_.tokenizer; }
  [[nodiscard]] absl::StatusOr<std::vector<TaskTrial>> draw(const std::string& task,
                                                            const TrialOptions& options) const {
    return draw_trials(**find_task(task), haystack_, *model_.tokenizer, options);
  }
  [[nodiscard]] std::vector<TaskTrial> draw_well(const std::string& task, const TrialOptions& options) const {
    auto trials = draw(task, options);
    REQUIRE_MESSAGE(trials.ok(), trials.status().message());
    return std::move(trials).value();
  }

 private:
  LanguageModel model_ = load_stories();
  Haystack haystack_;
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("the answer stands in the context and not in the question") {
  const Draws draws;
  for (const Task& task : all_tasks()) {
    CAPTURE(task.name);
    const std::vector<TaskTrial> trials = draws.draw_well(task.name, {6, 600, 3});
    REQUIRE(trials.size() == 6);
    for (const TaskTrial& trial : trials) {
      CHECK(holds(trial.context_text, trial.riddle.answer));
      CHECK_FALSE(holds(trial.riddle.question, trial.riddle.answer));
      for (const std::string& hidden : trial.riddle.hidden) {
        const size_t place = trial.context_text.find(hidden);
        REQUIRE(place != std::string::npos);
        CHECK(place < trial.context_text.size() * 95 / 100);
      }
      CHECK(trial.context.size() <= 600);
      CHECK(trial.context.size() > 450);
      CHECK(trial.context[0] == *draws.tokenizer().begin_token());
    }
  }
}

TEST_CASE("tokens are those of the whole text") {
  const Draws draws;
  for (const TaskTrial& trial : draws.draw_well("needles", {4, 500, 9})) {
    std::vector<Token> tokens = trial.context;
    tokens.insert(tokens.end(), trial.question.begin(), trial.question.end());
    tokens.insert(tokens.end(), trial.answer.begin(), trial.answer.end());
    CHECK(tokens == *draws.tokenizer().encode_prompt(trial.context_text + trial.riddle.question + trial.riddle.answer));
  }
}

TEST_CASE("a seed gives the same trials, and fewer are the first of more") {
  const Draws draws;
  for (const Task& task : all_tasks()) {
    CAPTURE(task.name);
    const std::vector<TaskTrial> few = draws.draw_well(task.name, {2, 500, 5});
    const std::vector<TaskTrial> more = draws.draw_well(task.name, {3, 500, 5});
    for (size_t i = 0; i < few.size(); ++i) {
      CHECK(few[i].context == more[i].context);
      CHECK(few[i].question == more[i].question);
      CHECK(few[i].answer == more[i].answer);
    }
    CHECK(few[0].context != few[1].context);
    CHECK(draws.draw_well(task.name, {1, 500, 6})[0].context != few[0].context);
  }
}

TEST_CASE("what is hidden is found at all depths") {
  const Draws draws;
  double shallowest = 1;
  double deepest = 0;
  for (const TaskTrial& trial : draws.draw_well("needle", {40, 600, 1})) {
    const double depth = static_cast<double>(trial.context_text.find(trial.riddle.hidden[0])) /
                         static_cast<double>(trial.context_text.size());
    shallowest = std::min(shallowest, depth);
    deepest = std::max(deepest, depth);
  }
  CHECK(shallowest < 0.15);
  CHECK(deepest > 0.75);
}

TEST_CASE("scores count digits or tokens, place by place") {
  const Draws draws;
  TaskTrial trial = draws.draw_well("needle", {1, 500, 2})[0];
  trial.riddle.answer = " 12345";
  CHECK(score_answer(trial, *draws.tokenizer().encode("12345"), draws.tokenizer()) == 1.0);
  CHECK(score_answer(trial, *draws.tokenizer().encode("1 2945"), draws.tokenizer()) == doctest::Approx(0.8));
  CHECK(score_answer(trial, *draws.tokenizer().encode("none"), draws.tokenizer()) == 0.0);
  trial.riddle.digits = false;
  trial.answer = {7, 8, 9, 10};
  CHECK(score_answer(trial, {7, 8, 9, 10}, draws.tokenizer()) == 1.0);
  CHECK(score_answer(trial, {7, 9, 9, 1}, draws.tokenizer()) == 0.5);
}

TEST_CASE("what cannot be drawn is named") {
  const Draws draws;
  CHECK(holds(std::string(find_task("chess").status().message()), "\"chess\""));
  const auto refused = [&](const TrialOptions& options) {
    return std::string(draws.draw("lookup", options).status().message());
  };
  CHECK(holds(refused({1, 50, 1}), "task lookup: contexts of 50 tokens are too short"));
  CHECK(holds(refused({1, 1000000, 1}), "no text holds"));
  CHECK(holds(refused({0, 500, 1}), "0 trials"));
}

}  // namespace
}  // namespace foldkv_lab::test
