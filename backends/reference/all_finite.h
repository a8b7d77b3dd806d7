#pragma once

#include "runtime/base/tensor_view.h"

namespace foldkv::backend::reference {

[[nodiscard]] bool all_finite(const TensorView& view);

}  // namespace foldkv::backend::reference
