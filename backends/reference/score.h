#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] int64_t score_workspace(const AttendShape& shape);
[[nodiscard]] Status score(const ScoreRequest& request);

}  // namespace foldkv::backend::reference
