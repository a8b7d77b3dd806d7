#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend {

// What every backend refuses to score.
[[nodiscard]] inline Status check_score(const ScoreRequest& request) {
  const AttendSequence& view = request.sequence;
  const int64_t heads = view.kv_heads(request.rules);
  if (view.first_head < 0 || heads < 1 || view.first_head + heads > request.rules.kv_heads) {
    return argument_error("sequence", absl::StrCat("has KV heads ", view.first_head, " to ", view.first_head + heads,
                                                   " of ", request.rules.kv_heads));
  }
  if (view.latent.token_count > 0 && heads != request.rules.kv_heads) {
    return argument_error("sequence", absl::StrCat("has latents and only ", heads, " of ", request.rules.kv_heads,
                                                   " KV heads"));
  }
  if (request.below != nullptr && request.thresholds == nullptr) {
    return argument_error("thresholds", "is missing, below counts numbers under it");
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend
