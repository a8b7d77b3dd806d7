#pragma once

#include <cstdint>

#include "backends/cpu/engine.h"
#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::cpu {

[[nodiscard]] int64_t score_workspace(const Engine& engine, const AttendShape& shape);
[[nodiscard]] Status score(const Engine& engine, const ScoreRequest& request);

}  // namespace foldkv::backend::cpu
