#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/number_format.h"
#include "runtime/base/status.h"

namespace foldkv {

enum class MeanSource : int32_t { kSequence = 1, kProfile = 2 };

// What a sequence keeps exact and when it compresses, with all defaults filled in.
struct SequencePolicy {
  NumberFormat format = NumberFormat::kF16;
  int64_t sink_tokens = 4;
  int64_t recent_tokens = 64;
  std::optional<int64_t> fold_tokens = 64;  // nullopt: generated tokens stay exact
  MeanSource mean = MeanSource::kSequence;
  size_t plan = 0;  // of the profile
};

// A first run shorter than this gives no useful mean of its own: it stays exact until more has come.
inline constexpr int64_t kShortestFirstRun = 16;

// How many of exact_tokens are encoded when a step (or a call to compress) ends.
struct EncodeQuestion {
  int64_t exact_tokens = 0;  // sinks included
  bool has_latents = false;
  bool whole = false;        // end of a prompt, or asked by the host: all that may go; else whole fold runs only
  int64_t run_tokens = 1;    // what is encoded is a multiple of it
};
[[nodiscard]] inline int64_t encode_count(const SequencePolicy& policy, const EncodeQuestion& question) {
  const int64_t spare = question.exact_tokens - policy.sink_tokens - policy.recent_tokens;
  if (spare <= 0) return 0;
  int64_t count = 0;
  if (question.whole) {
    count = spare;
  } else if (policy.fold_tokens.has_value()) {
    count = spare / *policy.fold_tokens * *policy.fold_tokens;
  }
  count -= count % question.run_tokens;
  return question.has_latents || count >= kShortestFirstRun ? count : 0;
}

}  // namespace foldkv
