#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/calibration/layer_groups.h"
#include "runtime/model/model.h"

namespace foldkv {

// Checks one side of a sample, a view of [tokens, key width] for every layer: all present, of equal token counts, of
// the widths of the model, of finite numbers. argument: "keys" or "values"; errors name "keys[3]".
[[nodiscard]] Status check_observed(absl::string_view argument, std::span<const TensorView> layers, const Model& model,
                                    int64_t tokens);

// Rows [first, first + count) of the group's layers, one after the other in each row, as f32.
// rows: [count][layers * key width], written.
void stack_rows(std::span<const TensorView> layers, const LayerGroup& group, int64_t first, int64_t count, float* rows);

}  // namespace foldkv
