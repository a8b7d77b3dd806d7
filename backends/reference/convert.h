#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

namespace foldkv::backend::reference {

[[nodiscard]] Status convert(const TensorView& input, const MutableTensorView& output);

}  // namespace foldkv::backend::reference
