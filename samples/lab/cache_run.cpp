#include "samples/lab/cache_run.h"

#include <algorithm>

#include "samples/lab/status_macros.h"

namespace foldkv_lab {

absl::Status CacheRun::begin(std::span<const Token> tokens) {
  LAB_RETURN_IF_ERROR(clear());
  return decoder_.feed(tokens, 0, &step_logits_);
}

absl::Status CacheRun::feed(std::span<const Token> tokens, int64_t step, std::vector<float>* logits) {
  const int64_t count = static_cast<int64_t>(tokens.size());
  logits->clear();
  logits->reserve(tokens.size() * static_cast<size_t>(decoder_.model().shape.vocabulary_size));
  for (int64_t start = 0; start < count; start += step) {
    const int64_t size = std::min(step, count - start);
    LAB_RETURN_IF_ERROR(decoder_.feed(tokens.subspan(static_cast<size_t>(start), static_cast<size_t>(size)), size,
                                      &step_logits_, size));
    logits->insert(logits->end(), step_logits_.begin(), step_logits_.end());
  }
  return absl::OkStatus();
}

absl::Status CacheRun::ask(std::span<const Token> tokens, std::vector<float>* logits) {
  return decoder_.feed(tokens, 1, logits, static_cast<int64_t>(tokens.size()));
}

}  // namespace foldkv_lab
