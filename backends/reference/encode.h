#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status encode(const EncodeRequest& request);

}  // namespace foldkv::backend::reference
