#include "samples/lab/tensor_type.h"

#include <array>

namespace foldkv_lab {
namespace {

constexpr std::array<TensorTypeInfo, 9> kTypes = {{
    {TensorType::kF32, "F32", 1, 4},
    {TensorType::kF16, "F16", 1, 2},
    {TensorType::kBf16, "BF16", 1, 2},
    {TensorType::kQ4_0, "Q4_0", 32, 18},   // scale, 16 bytes of nibbles
    {TensorType::kQ4_1, "Q4_1", 32, 20},   // scale, minimum, 16 bytes of nibbles
    {TensorType::kQ5_0, "Q5_0", 32, 22},   // scale, 32 high bits, 16 bytes of nibbles
    {TensorType::kQ8_0, "Q8_0", 32, 34},   // scale, 32 signed bytes
    {TensorType::kQ4K, "Q4_K", 256, 144},  // scale, minimum scale, 8 x (6 + 6) bits, 128 bytes of nibbles
    {TensorType::kQ6K, "Q6_K", 256, 210},  // 128 bytes low nibbles, 64 bytes high pairs, 16 scales, scale
}};

}  // namespace

const TensorTypeInfo* find_tensor_type(uint32_t code) {
  for (const TensorTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == code) return &info;
  }
  return nullptr;
}

const TensorTypeInfo& tensor_type_info(TensorType type) { return *find_tensor_type(static_cast<uint32_t>(type)); }

}  // namespace foldkv_lab
