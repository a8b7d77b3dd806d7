#include "backends/reference/move_latents.h"

#include <cstring>

#include "backends/interface/check_move.h"

namespace foldkv::backend::reference {
namespace {

// One of the arrays of a page that have a row of `bytes` for each token.
void move_row(const MoveLatentsRequest& request, int64_t from, int64_t to, int64_t offset, int64_t bytes) {
  const int64_t page_tokens = request.layout->page_tokens;
  std::memcpy(request.pages[to / page_tokens] + offset + to % page_tokens * bytes,
              request.pages[from / page_tokens] + offset + from % page_tokens * bytes, static_cast<size_t>(bytes));
}

}  // namespace

// Rising order, as in move_rows.
Status move_latents(const MoveLatentsRequest& request) {
  FOLDKV_RETURN_IF_ERROR(check_move(request));
  const LatentLayout& layout = *request.layout;
  for (int64_t i = 0; i < request.count; ++i) {
    const int64_t from = request.slot(i);
    const int64_t to = request.to + i;
    if (from == to) continue;
    for (const Side side : {Side::kKeys, Side::kValues}) {
      const LatentPlane& plane = layout.plane(side);
      move_row(request, from, to, plane.codes_offset, plane.code_bytes);
      move_row(request, from, to, plane.scales_offset, plane.scale_bytes);
    }
    move_row(request, from, to, layout.coefficients_offset, layout.correction_rank * bytes_of(NumberFormat::kF16));
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
