#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status move_latents(const MoveLatentsRequest& request);

}  // namespace foldkv::backend::reference
