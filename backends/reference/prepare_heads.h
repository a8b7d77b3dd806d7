#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status prepare_heads(const PrepareHeadsRequest& request);

}  // namespace foldkv::backend::reference
