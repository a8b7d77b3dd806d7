#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend {

// What every backend refuses to move.
[[nodiscard]] inline Status check_move(const MoveLatentsRequest& request) {
  if (request.layout->run_tokens() == 1) return absl::OkStatus();
  return with_argument(unsupported_error(absl::StrCat("latents whose scales or heads belong to runs of ",
                                                      request.layout->run_tokens(), " tokens cannot be moved")),
                       "layout");
}

}  // namespace foldkv::backend
