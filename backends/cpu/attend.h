#pragma once

#include <cstdint>

#include "backends/cpu/engine.h"
#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend::cpu {

[[nodiscard]] Status check_attention(const AttentionRules& rules, const LatentLayout* layout);
[[nodiscard]] int64_t attend_workspace(const Engine& engine, const AttendShape& shape);
void attend(const Engine& engine, const AttendRequest& request);

}  // namespace foldkv::backend::cpu
