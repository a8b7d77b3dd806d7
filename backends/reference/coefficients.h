#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status coefficients(const CoefficientsRequest& request);

}  // namespace foldkv::backend::reference
