#include "backends/reference/append.h"

#include "backends/reference/exact_row.h"
#include "backends/reference/head.h"
#include "backends/reference/norm.h"
#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {
namespace {

// norm: null, or of one head. Without it a row is taken in pieces of head_size all the same.
Status append_row(const AppendRequest& request, const TensorView& view, int64_t row, Side side, const float* norm) {
  std::byte* const target = exact_row(request.layout, request.region.pages, request.first_slot + row, side);
  HeadBuffer head;
  for (int64_t first = 0; first < request.layout.width; first += request.head_size) {
    read_numbers(view.format, view.row(row) + first * bytes_of(view.format), request.head_size, head.data());
    if (norm != nullptr) norm_heads(norm, request.norm_epsilon, 1, request.head_size, head.data());
    for (int64_t i = 0; i < request.head_size; ++i) {
      const double number = head[static_cast<size_t>(i)];
      if (!write_number(request.layout.format, target, first + i, number)) {
        const absl::string_view argument = side == Side::kKeys ? "key" : "value";
        return with_argument(
            numeric_error(absl::StrCat("number ", number, " in row ", row, ", column ", first + i, " is not finite in ",
                                       std::string(name_of(request.layout.format)))),
            argument);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status append(const AppendRequest& request) {
  FOLDKV_RETURN_IF_ERROR(check_head_size(request.head_size));
  for (int64_t row = 0; row < request.keys.row_count; ++row) {
    FOLDKV_RETURN_IF_ERROR(append_row(request, request.keys, row, Side::kKeys, request.key_norm));
    FOLDKV_RETURN_IF_ERROR(append_row(request, request.values, row, Side::kValues, nullptr));
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
