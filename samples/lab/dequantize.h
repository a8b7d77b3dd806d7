#pragma once

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "samples/lab/tensor_type.h"

namespace foldkv_lab {

// Turns stored numbers of any TensorType into floats. The sizes must agree: whole blocks, and as many bytes as
// they take.
[[nodiscard]] absl::Status dequantize(TensorType type, std::span<const std::byte> source, std::span<float> target);

}  // namespace foldkv_lab
