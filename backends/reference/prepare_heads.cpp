#include "backends/reference/prepare_heads.h"

#include "backends/reference/head.h"
#include "backends/reference/norm.h"
#include "backends/reference/numbers.h"
#include "backends/reference/rotation.h"

namespace foldkv::backend::reference {

Status prepare_heads(const PrepareHeadsRequest& request) {
  FOLDKV_RETURN_IF_ERROR(check_head_size(request.head_size));
  const NumberFormat format = request.input.format;
  HeadBuffer head;
  float* output = request.output;
  for (int64_t row = 0; row < request.input.row_count; ++row) {
    for (int64_t h = 0; h < request.heads; ++h) {
      const std::byte* const numbers = request.input.row(row) + h * request.head_size * bytes_of(format);
      read_numbers(format, numbers, request.head_size, head.data());
      if (request.norm != nullptr) norm_heads(request.norm, request.norm_epsilon, 1, request.head_size, head.data());
      if (request.rotation.frequency_count > 0) {
        rotate_heads(request.rotation, request.positions[row], 1, request.head_size, head.data());
      }
      for (int64_t i = 0; i < request.head_size; ++i) *output++ = static_cast<float>(head[static_cast<size_t>(i)]);
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
