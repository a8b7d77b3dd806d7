#pragma once

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::reference {

[[nodiscard]] int64_t attend_workspace(const AttendShape& shape);
[[nodiscard]] Status attend(const AttendRequest& request);

}  // namespace foldkv::backend::reference
