#pragma once

#include <cstdint>
#include <initializer_list>

#include "abi/guard.h"
#include "runtime/base/tensor_view.h"

namespace foldkv::abi {

// What a tensor must be. Dimensions after the first may also come taken together: [rows, heads, head_size] fits
// [rows, heads * head_size].
struct TensorExpectation {
  absl::string_view name;
  std::initializer_list<int64_t> shape;
  bool only_f32 = false;
};

// Error that names the field of the tensor, what was got and what was expected. Device tensors are refused unless
// the device's memory is host memory.
[[nodiscard]] StatusOr<TensorView> read_tensor(const foldkv_tensor& tensor, const TensorExpectation& expected);
[[nodiscard]] StatusOr<MutableTensorView> read_output_tensor(const foldkv_tensor& tensor,
                                                             const TensorExpectation& expected);
// Absent tensors give an absent view.
[[nodiscard]] StatusOr<TensorView> read_optional_tensor(const foldkv_tensor& tensor,
                                                        const TensorExpectation& expected);
// Shape [any, ...]: the first dimension is free (1 or more).
inline constexpr int64_t kAnySize = -1;

}  // namespace foldkv::abi
