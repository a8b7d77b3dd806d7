#pragma once

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace foldkv {

// Puts defaults where a field is 0 (attention_scale: 1 / sqrt(head_size); rotation scale: 1; norm_epsilon: 1e-6), then
// checks every field. Argument errors name the field, "layers[3].kv_heads" for example, with what was got and expected.
// Bounds beside the obvious ones are those of limits.h.
[[nodiscard]] Status complete_description(ModelDescription& description);

}  // namespace foldkv
