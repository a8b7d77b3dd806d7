#include "samples/lab/answer.h"

#include <algorithm>
#include <span>

#include "samples/lab/divergence.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

// Up to the first token that is wrong, this one included, greedy decoding reads what teacher forcing reads.
std::vector<Token> greedy_beginning(const std::vector<Token>& right, std::span<const float> logits) {
  const size_t width = logits.size() / right.size();
  std::vector<Token> tokens;
  for (size_t i = 0; i < right.size(); ++i) {
    tokens.push_back(static_cast<Token>(top_token(logits.subspan(i * width, width))));
    if (tokens.back() != right[i]) break;
  }
  return tokens;
}

// A cache cannot take tokens back: the same context is fed again, and the wrong token after it.
absl::Status go_on(CacheRun& run, const TaskTrial& trial, std::vector<Token>* tokens) {
  LAB_RETURN_IF_ERROR(run.begin(trial.context));
  std::vector<float> logits;
  LAB_RETURN_IF_ERROR(run.ask(trial.question, &logits));
  LAB_RETURN_IF_ERROR(run.feed(*tokens, 1, &logits));
  const size_t width = logits.size() / tokens->size();
  logits.erase(logits.begin(), logits.end() - static_cast<int64_t>(width));
  tokens->push_back(static_cast<Token>(top_token(logits)));
  while (tokens->size() < trial.answer.size()) {
    LAB_RETURN_IF_ERROR(run.ask({&tokens->back(), 1}, &logits));
    tokens->push_back(static_cast<Token>(top_token(logits)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Answer> answer_trial(CacheRun& run, const TaskTrial& trial) {
  Answer answer;
  LAB_RETURN_IF_ERROR(run.ask(trial.question, &answer.logits));
  std::vector<float> more;
  LAB_RETURN_IF_ERROR(run.feed(std::span(trial.answer).first(trial.answer.size() - 1), 1, &more));
  answer.logits.insert(answer.logits.end(), more.begin(), more.end());
  answer.tokens = greedy_beginning(trial.answer, answer.logits);
  if (answer.tokens.size() < trial.answer.size()) LAB_RETURN_IF_ERROR(go_on(run, trial, &answer.tokens));
  return answer;
}

}  // namespace foldkv_lab
