#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/haystack.h"
#include "samples/lab/task.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

struct TrialOptions {
  int64_t trials = 32;
  int64_t length = 2048;  // most tokens of a context; all but those of a sentence are used
  uint64_t seed = 1;
};

// One riddle hidden in one stretch of text, as tokens that the model reads one after the other.
struct TaskTrial {
  std::string context_text;
  Riddle riddle;
  std::vector<Token> context;  // with the begin token, if there is one
  std::vector<Token> question;
  std::vector<Token> answer;
};

// The same trials for the same seed, everywhere; fewer trials are the first of more. What is hidden stands between
// passages of the first nine tenths of a context, since the last tokens stay exact whatever the codec. An error that
// names what is wrong when a context cannot be made so short, or when no text is so long.
[[nodiscard]] absl::StatusOr<std::vector<TaskTrial>> draw_trials(const Task& task, const Haystack& haystack,
                                                                 const Tokenizer& tokenizer,
                                                                 const TrialOptions& options);

// The share of the answer that these tokens, as many as it has, get right: place by place, of its tokens or, when the
// riddle says so, of its digits.
[[nodiscard]] double score_answer(const TaskTrial& trial, const std::vector<Token>& tokens, const Tokenizer& tokenizer);

}  // namespace foldkv_lab
