#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/cache_run.h"
#include "samples/lab/task_trial.h"

namespace foldkv_lab {

// What a model makes of a question, from one cache.
struct Answer {
  std::vector<Token> tokens;  // greedy decoding, as many as the right answer has
  std::vector<float> logits;  // [answer, vocabulary]: what the right answer's tokens were predicted by, teacher-forced
};

// The trial's context must have been fed, and nothing else.
[[nodiscard]] absl::StatusOr<Answer> answer_trial(CacheRun& run, const TaskTrial& trial);

}  // namespace foldkv_lab
