#include "samples/lab/task_trial.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

constexpr double kDeepest = 0.9;  // share of a context before which things are hidden

// A place between passages for each hidden text.
struct Layout {
  std::vector<Passage> passages;
  std::vector<double> depths;
};

size_t place_of(const std::vector<Passage>& passages, double depth) {
  int64_t total = 0;
  for (const Passage& passage : passages) total += passage.tokens;
  int64_t before = 0;
  size_t place = 0;
  while (place < passages.size()) {
    before += passages[place].tokens;
    if (static_cast<double>(before) > depth * static_cast<double>(total)) break;
    ++place;
  }
  return place;
}

std::string write_context(const Layout& layout, const Riddle& riddle) {
  std::vector<std::string> before(layout.passages.size() + 1);
  for (size_t i = 0; i < riddle.hidden.size(); ++i) {
    before[place_of(layout.passages, layout.depths[i])] += riddle.hidden[i];
  }
  std::string text = before[0];
  for (size_t i = 0; i < layout.passages.size(); ++i) absl::StrAppend(&text, layout.passages[i].text, before[i + 1]);
  // White space at the end would stand between the text and the question as tokens that no text has.
  return std::string(absl::StripTrailingAsciiWhitespace(text));
}

// Tokens of `text` after `before`: as the two are written together, unless that changes the tokens of `before`.
absl::StatusOr<std::vector<Token>> encode_after(const Tokenizer& tokenizer, const std::string& before,
                                                const std::string& text) {
  LAB_ASSIGN_OR_RETURN(const std::vector<Token> start, tokenizer.encode_prompt(before));
  LAB_ASSIGN_OR_RETURN(std::vector<Token> both, tokenizer.encode_prompt(absl::StrCat(before, text)));
  if (both.size() > start.size() && std::equal(start.begin(), start.end(), both.begin())) {
    both.erase(both.begin(), both.begin() + static_cast<int64_t>(start.size()));
    return both;
  }
  return tokenizer.encode(text);
}

absl::StatusOr<Layout> draw_layout(const Riddle& riddle, const Haystack& haystack, const Tokenizer& tokenizer,
                                   int64_t length, UniformRandom& random) {
  int64_t hidden = 0;
  Layout layout;
  for (const std::string& text : riddle.hidden) {
    LAB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, tokenizer.encode_prompt(text));
    hidden += static_cast<int64_t>(tokens.size());
    layout.depths.push_back(kDeepest * random.fraction());
  }
  if (2 * hidden > length) {
    return absl::InvalidArgumentError(absl::StrCat("contexts of ", length, " tokens are too short to hide ", hidden,
                                                   " tokens in; expected a length of at least ", 2 * hidden));
  }
  LAB_ASSIGN_OR_RETURN(layout.passages, haystack.draw_run(length - hidden, random));
  return layout;
}

absl::StatusOr<TaskTrial> draw_trial(const Task& task, const Haystack& haystack, const Tokenizer& tokenizer,
                                     int64_t length, UniformRandom& random) {
  TaskTrial trial;
  LAB_ASSIGN_OR_RETURN(trial.riddle, task.draw(haystack, random));
  LAB_ASSIGN_OR_RETURN(Layout layout, draw_layout(trial.riddle, haystack, tokenizer, length, random));
  while (true) {
    trial.context_text = write_context(layout, trial.riddle);
    LAB_ASSIGN_OR_RETURN(trial.context, tokenizer.encode_prompt(trial.context_text));
    if (static_cast<int64_t>(trial.context.size()) <= length || layout.passages.empty()) break;
    layout.passages.pop_back();  // passages need some more tokens together than alone
  }
  const std::string asked = trial.context_text + trial.riddle.question;
  LAB_ASSIGN_OR_RETURN(trial.question, encode_after(tokenizer, trial.context_text, trial.riddle.question));
  LAB_ASSIGN_OR_RETURN(trial.answer, encode_after(tokenizer, asked, trial.riddle.answer));
  return trial;
}

std::string digits_of(const std::string& text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char character) { return absl::ascii_isdigit(static_cast<unsigned char>(character)); });
  return digits;
}

template <typename Sequence>
double share_of_equal(const Sequence& expected, const Sequence& actual) {
  size_t equal = 0;
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) equal += expected[i] == actual[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(expected.size());
}

}  // namespace

absl::StatusOr<std::vector<TaskTrial>> draw_trials(const Task& task, const Haystack& haystack,
                                                   const Tokenizer& tokenizer, const TrialOptions& options) {
  if (options.trials < 1) {
    return absl::InvalidArgumentError(absl::StrCat(options.trials, " trials; expected at least 1"));
  }
  UniformRandom random(options.seed);
  std::vector<TaskTrial> trials;
  for (int64_t i = 0; i < options.trials; ++i) {
    absl::StatusOr<TaskTrial> trial = draw_trial(task, haystack, tokenizer, options.length, random);
    if (!trial.ok()) {
      return absl::Status(trial.status().code(), absl::StrCat("task ", task.name, ": ", trial.status().message()));
    }
    trials.push_back(*std::move(trial));
  }
  return trials;
}

double score_answer(const TaskTrial& trial, const std::vector<Token>& tokens, const Tokenizer& tokenizer) {
  if (!trial.riddle.digits) return share_of_equal(trial.answer, tokens);
  return share_of_equal(digits_of(trial.riddle.answer), digits_of(tokenizer.decode(tokens)));
}

}  // namespace foldkv_lab
