#include "abi/read_tensor.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/base/checked.h"

namespace foldkv::abi {
namespace {

Status field_error(const TensorExpectation& expected, absl::string_view field, absl::string_view message) {
  return argument_error(absl::StrCat(expected.name, ".", field), message);
}

Status check_form(const foldkv_tensor& tensor, const TensorExpectation& expected) {
  if (tensor.data == nullptr) return field_error(expected, "data", "is NULL");
  const bool known = tensor.dtype >= FOLDKV_F32 && tensor.dtype <= FOLDKV_BF16;
  if (!known || (expected.only_f32 && tensor.dtype != FOLDKV_F32)) {
    return field_error(expected, "dtype", absl::StrCat("is ", tensor.dtype, ", expected ",
                                                       expected.only_f32 ? "FOLDKV_F32 (1)" : "1, 2 or 3"));
  }
  if (tensor.device != FOLDKV_HOST) {
    return field_error(expected, "device", absl::StrCat("is ", tensor.device, ", expected FOLDKV_HOST (0)"));
  }
  if (tensor.rank < 1 || tensor.rank > 4) {
    return field_error(expected, "rank", absl::StrCat("is ", tensor.rank, ", expected 1 to 4"));
  }
  if (tensor.reserved != 0) return field_error(expected, "reserved", "is not zero");
  return absl::OkStatus();
}

int64_t product_of(std::vector<int64_t>::const_iterator first, std::vector<int64_t>::const_iterator last) {
  int64_t product = 1;
  for (auto factor = first; factor != last; ++factor) product *= *factor;
  return product;
}

bool shape_fits(const std::vector<int64_t>& shape, const std::vector<int64_t>& expected) {
  if (expected.front() == kAnySize ? shape.front() < 1 : shape.front() != expected.front()) return false;
  if (shape.size() == expected.size()) return std::equal(shape.begin() + 1, shape.end(), expected.begin() + 1);
  return shape.size() == 2 && expected.size() > 2 && shape[1] == product_of(expected.begin() + 1, expected.end());
}

Status check_shape(const foldkv_tensor& tensor, const TensorExpectation& expected) {
  const std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.rank);
  const std::vector<int64_t> wanted(expected.shape);
  if (shape_fits(shape, wanted)) return absl::OkStatus();
  std::string text = absl::StrJoin(wanted, ", ");
  if (wanted.front() == kAnySize) text.replace(0, 2, "1 or more");
  return field_error(expected, "shape",
                     absl::StrCat("is [", absl::StrJoin(shape, ", "), "], expected [", text, "]"));
}

// The distance of rows in elements.
StatusOr<int64_t> row_stride(const foldkv_tensor& tensor, const TensorExpectation& expected) {
  int64_t dense = 1;
  for (int32_t axis = tensor.rank - 1; axis > 0; --axis) dense *= tensor.shape[axis];
  if (std::all_of(tensor.strides, tensor.strides + tensor.rank, [](int64_t stride) { return stride == 0; })) {
    return dense;
  }
  int64_t inner = 1;
  for (int32_t axis = tensor.rank - 1; axis > 0; --axis) {
    if (tensor.strides[axis] != inner && tensor.shape[axis] != 1) {
      return field_error(expected, "strides", absl::StrCat("[", axis, "] is ", tensor.strides[axis], ", expected ",
                                                           inner, ": only the first dimension may be spaced"));
    }
    inner *= tensor.shape[axis];
  }
  const bool single = tensor.shape[0] == 1;
  const int64_t last_row = std::max<int64_t>(tensor.shape[0] - 1, 1);
  if (!single && (tensor.strides[0] < dense ||
                  tensor.strides[0] > std::numeric_limits<int64_t>::max() / 8 / last_row)) {
    return field_error(expected, "strides",
                       absl::StrCat("[0] is ", tensor.strides[0], ", expected ", dense, " or more"));
  }
  return single ? dense : tensor.strides[0];
}

}  // namespace

StatusOr<MutableTensorView> read_output_tensor(const foldkv_tensor& tensor, const TensorExpectation& expected) {
  FOLDKV_RETURN_IF_ERROR(check_form(tensor, expected));
  FOLDKV_RETURN_IF_ERROR(check_shape(tensor, expected));
  MutableTensorView view;
  FOLDKV_ASSIGN_OR_RETURN(view.row_stride, row_stride(tensor, expected));
  view.data = static_cast<std::byte*>(tensor.data);
  view.format = static_cast<NumberFormat>(tensor.dtype);
  view.row_count = tensor.shape[0];
  view.column_count = 1;
  for (int32_t axis = 1; axis < tensor.rank; ++axis) view.column_count *= tensor.shape[axis];
  if (tensor.rank == 1) {  // a vector is one row
    view.column_count = view.row_count;
    view.row_count = 1;
    view.row_stride = view.column_count;
  }
  if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(bytes_of(view.format)) != 0) {
    return field_error(expected, "data", absl::StrCat("is not aligned to ", bytes_of(view.format), " bytes"));
  }
  return view;
}

StatusOr<TensorView> read_tensor(const foldkv_tensor& tensor, const TensorExpectation& expected) {
  FOLDKV_ASSIGN_OR_RETURN(const MutableTensorView view, read_output_tensor(tensor, expected));
  return TensorView(view);
}

StatusOr<TensorView> read_optional_tensor(const foldkv_tensor& tensor, const TensorExpectation& expected) {
  if (tensor.data == nullptr) return TensorView{};
  return read_tensor(tensor, expected);
}

}  // namespace foldkv::abi
