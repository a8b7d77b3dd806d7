#pragma once

#include "backends/cpu/engine.h"
#include "backends/interface/operations.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

// Operations on rows of numbers.
namespace foldkv::backend::cpu {

[[nodiscard]] bool all_finite(const Engine& engine, const TensorView& view);
[[nodiscard]] Status convert(const Engine& engine, const TensorView& input, const MutableTensorView& output);
void prepare_heads(const Engine& engine, const PrepareHeadsRequest& request);
[[nodiscard]] Status append(const Engine& engine, const AppendRequest& request);
void move_rows(const MoveRequest& request);

}  // namespace foldkv::backend::cpu
