#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status moments(const MomentsRequest& request);

}  // namespace foldkv::backend::reference
