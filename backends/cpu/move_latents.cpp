#include "backends/cpu/latents.h"
#include "backends/cpu/slot_moves.h"
#include "backends/interface/check_move.h"

namespace foldkv::backend::cpu {

Status move_latents(const MoveLatentsRequest& request) {
  FOLDKV_RETURN_IF_ERROR(check_move(request));
  const LatentLayout& layout = *request.layout;
  const PageRows arrays[] = {{layout.keys.codes_offset, layout.keys.code_bytes},
                             {layout.keys.scales_offset, layout.keys.scale_bytes},
                             {layout.values.codes_offset, layout.values.code_bytes},
                             {layout.values.scales_offset, layout.values.scale_bytes},
                             {layout.coefficients_offset, layout.correction_rank * bytes_of(NumberFormat::kF16)}};
  move_slots({request.pages, layout.page_tokens, request.slots, request.from, request.to, request.count}, arrays);
  return absl::OkStatus();
}

}  // namespace foldkv::backend::cpu
