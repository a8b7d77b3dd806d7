#include "samples/lab/evaluate_task.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/answer.h"
#include "samples/lab/divergence.h"
#include "samples/lab/full_attention.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/stopwatch.h"

namespace foldkv_lab {
namespace {

MeanInterval interval_of(const std::vector<double>& scores) {
  constexpr int64_t kResamples = 2000;
  constexpr uint64_t kSeed = 1;
  return bootstrap_mean(scores, kResamples, kSeed);
}

// What the full cache said of one trial.
struct Reference {
  const TaskTrial* trial;
  Answer answer;
};

// A codec on its way through the trials. It keeps no tokens between them: many codecs share one budget.
class CodecRun {
 public:
  [[nodiscard]] static absl::StatusOr<CodecRun> create(FoldkvHost& host, const Codec& codec) {
    LAB_ASSIGN_OR_RETURN(std::unique_ptr<FoldkvAttention> attention,
                         FoldkvAttention::create(host, codec.profile, codec.options));
    return CodecRun(host, codec, std::move(attention));
  }

  [[nodiscard]] absl::Status add(const Reference& reference, const Tokenizer& tokenizer) {
    const TaskTrial& trial = *reference.trial;
    const Stopwatch stopwatch;
    LAB_RETURN_IF_ERROR(run_.begin(trial.context));
    LAB_ASSIGN_OR_RETURN(const foldkv_sequence_stats stats, attention_->stats());
    bytes_ += stats.bytes;
    full_bytes_ += stats.full_cache_bytes;
    held_tokens_ += stats.held_head_tokens;
    fed_tokens_ += stats.fed_head_tokens;
    LAB_ASSIGN_OR_RETURN(const Answer answer, answer_trial(run_, trial));
    figures_.seconds += stopwatch.seconds();
    LAB_RETURN_IF_ERROR(run_.clear());
    scores_.push_back(score_answer(trial, answer.tokens, tokenizer));
    return add_divergence(reference.answer.logits, answer.logits, trial.answer.size());
  }

  [[nodiscard]] CodecTaskFigures finish(const MeanInterval& full) && {
    figures_.score = interval_of(scores_);
    figures_.retention = full.mean > 0 ? figures_.score.mean / full.mean : 0;
    figures_.kl /= static_cast<double>(positions_);
    figures_.ratio = static_cast<double>(full_bytes_) / static_cast<double>(bytes_);
    figures_.kept = static_cast<double>(held_tokens_) / static_cast<double>(fed_tokens_);
    return std::move(figures_);
  }

 private:
  CodecRun(FoldkvHost& host, const Codec& codec, std::unique_ptr<FoldkvAttention> attention)
      : attention_(std::move(attention)), run_(host.model(), *attention_, host.threads()) {
    figures_.codec = codec.name;
  }

  [[nodiscard]] absl::Status add_divergence(std::span<const float> full, std::span<const float> compressed,
                                            size_t positions) {
    const size_t width = full.size() / positions;
    for (size_t i = 0; i < positions; ++i) {
      LAB_ASSIGN_OR_RETURN(
          const Divergence divergence,
          compare_logits<float>(full.subspan(i * width, width), compressed.subspan(i * width, width), -1));
      figures_.kl += divergence.kl;
    }
    positions_ += positions;
    return absl::OkStatus();
  }

  std::unique_ptr<FoldkvAttention> attention_;
  CacheRun run_;
  std::vector<double> scores_;
  size_t positions_ = 0;
  uint64_t bytes_ = 0;
  uint64_t full_bytes_ = 0;
  int64_t held_tokens_ = 0;
  int64_t fed_tokens_ = 0;
  CodecTaskFigures figures_;
};

int64_t longest(const std::vector<TaskTrial>& trials) {
  size_t tokens = 0;
  for (const TaskTrial& trial : trials) {
    tokens = std::max(tokens, trial.context.size() + trial.question.size() + trial.answer.size());
  }
  return static_cast<int64_t>(tokens);
}

}  // namespace

absl::StatusOr<TaskEvaluation> evaluate_task(FoldkvHost& host, const std::vector<Codec>& codecs,
                                             const Tokenizer& tokenizer, const std::string& task,
                                             const std::vector<TaskTrial>& trials,
                                             absl::FunctionRef<void(int64_t)> progress) {
  LAB_RETURN_IF_ERROR(check_codecs(codecs));
  if (trials.empty()) return absl::InvalidArgumentError(absl::StrCat("task ", task, " has no trials"));
  FullAttention full_attention(host.model(), CacheFormat::kF32, longest(trials), host.threads());
  CacheRun full(host.model(), full_attention, host.threads());
  std::vector<CodecRun> runs;
  runs.reserve(codecs.size());
  for (const Codec& codec : codecs) {
    LAB_ASSIGN_OR_RETURN(CodecRun run, CodecRun::create(host, codec));
    runs.push_back(std::move(run));
  }
  TaskEvaluation result;
  result.task = task;
  result.trials = static_cast<int64_t>(trials.size());
  std::vector<double> full_scores;
  int64_t runs_done = 0;
  for (const TaskTrial& trial : trials) {
    result.context_tokens += static_cast<double>(trial.context.size()) / static_cast<double>(trials.size());
    const Stopwatch stopwatch;
    LAB_RETURN_IF_ERROR(full.begin(trial.context));
    Reference reference{&trial, {}};
    LAB_ASSIGN_OR_RETURN(reference.answer, answer_trial(full, trial));
    result.full_seconds += stopwatch.seconds();
    full_scores.push_back(score_answer(trial, reference.answer.tokens, tokenizer));
    for (CodecRun& run : runs) {
      LAB_RETURN_IF_ERROR(run.add(reference, tokenizer));
      progress(++runs_done);
    }
  }
  result.full = interval_of(full_scores);
  for (CodecRun& run : runs) result.codecs.push_back(std::move(run).finish(result.full));
  return result;
}

}  // namespace foldkv_lab
