#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status check_attention(const AttentionRules& rules, const LatentLayout* layout);

}  // namespace foldkv::backend::reference
