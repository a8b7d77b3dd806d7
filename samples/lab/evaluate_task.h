#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "samples/lab/bootstrap.h"
#include "samples/lab/codec.h"
#include "samples/lab/task_trial.h"

namespace foldkv_lab {

struct CodecTaskFigures {
  std::string codec;
  MeanInterval score;    // over trials
  double retention = 0;  // mean score by that of the full cache; 0 when that is 0
  double kl = 0;         // KL(full || codec) where the right answer is written, mean over all its tokens, nats
  double ratio = 0;      // full bytes by bytes, everything counted, after the contexts were compressed
  double kept = 1;       // of the contexts' tokens, the share that a KV head holds, on average
  double seconds = 0;
};

struct TaskEvaluation {
  std::string task;
  int64_t trials = 0;
  double context_tokens = 0;  // mean
  MeanInterval full;
  double full_seconds = 0;
  std::vector<CodecTaskFigures> codecs;  // in the order they were given

  // A model that cannot do a task with the full cache says nothing of codecs.
  [[nodiscard]] bool usable() const { return full.mean >= kUsableScore; }
  static constexpr double kUsableScore = 0.5;
};

// Each context is fed exactly and then compressed; the question, which compression has not seen, and the answer follow.
// Greedy decoding gives the score, the right answer, teacher-forced, the divergence. The full cache runs once for all
// codecs. progress is told the runs done: one trial through one codec each.
[[nodiscard]] absl::StatusOr<TaskEvaluation> evaluate_task(FoldkvHost& host, const std::vector<Codec>& codecs,
                                                           const Tokenizer& tokenizer, const std::string& task,
                                                           const std::vector<TaskTrial>& trials,
                                                           absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
