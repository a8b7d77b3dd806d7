#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace foldkv_lab {

// Number formats of weights in files. The values are those of GGUF.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ8_0 = 8,
  kQ4K = 12,
  kQ6K = 14,
  kBf16 = 30,
};

// Numbers are stored in blocks that share scales.
struct TensorTypeInfo {
  TensorType type;
  absl::string_view name;
  uint32_t block_elements;
  uint32_t block_bytes;
};

// nullptr for a code that the lab does not read.
[[nodiscard]] const TensorTypeInfo* find_tensor_type(uint32_t code);
[[nodiscard]] const TensorTypeInfo& tensor_type_info(TensorType type);

}  // namespace foldkv_lab
