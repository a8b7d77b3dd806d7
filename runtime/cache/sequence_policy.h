#pragma once

#include <cstddef>
#include <cstdint>
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/interface/operations.h"
#include "runtime/base/number_format.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/policy/eviction_policy.h"

namespace foldkv {

enum class MeanSource : int32_t { kSequence = 1, kProfile = 2 };

// Positions [first, end).
struct PositionRange {
  int64_t first = 0;
  int64_t end = 0;
};

// How a sequence evicts tokens.
struct SequenceEviction {
  EvictionPolicy policy;
  int64_t layers_per_group = 4;       // that decide together under SelectionScope::kGroup where no profile groups them
  std::vector<PositionRange> pinned;  // tokens that the host wants kept
  std::vector<uint8_t> exempt;        // of each layer: 1 where all tokens stay; empty: layers with a sliding window
  std::vector<std::vector<int32_t>> voting_heads;  // of each layer: query heads, best first; empty: all vote

  [[nodiscard]] std::span<const int32_t> voting_of(int64_t layer) const {
    if (voting_heads.empty() || policy.scoring.voting_heads == 0) return {};
    const std::span<const int32_t> heads = voting_heads[static_cast<size_t>(layer)];
    return heads.first(std::min(heads.size(), static_cast<size_t>(policy.scoring.voting_heads)));
  }
};

// What a sequence keeps exact and when it compresses, with all defaults filled in.
struct SequencePolicy {
  NumberFormat format = NumberFormat::kF16;
  int64_t sink_tokens = 4;
  int64_t recent_tokens = 64;
  std::optional<int64_t> fold_tokens = 64;  // nullopt: generated tokens stay exact
  MeanSource mean = MeanSource::kSequence;
  size_t plan = 0;  // of the profile
  backend::Arithmetic arithmetic = backend::Arithmetic::kExact;
  std::shared_ptr<const SequenceEviction> eviction;  // null: every token stays
};

// Whether eviction decides over the tokens of a layer.
[[nodiscard]] inline bool evicts(const SequencePolicy& policy, const Model& model, int64_t layer) {
  if (policy.eviction == nullptr) return false;
  const std::vector<uint8_t>& exempt = policy.eviction->exempt;
  return exempt.empty() ? model.layer(layer).window == 0 : exempt[static_cast<size_t>(layer)] == 0;
}

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
