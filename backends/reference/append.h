#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status append(const AppendRequest& request);

}  // namespace foldkv::backend::reference
