#include "backends/cpu/rows.h"
#include "backends/cpu/slot_moves.h"

namespace foldkv::backend::cpu {

void move_rows(const MoveRequest& request) {
  const ExactLayout& layout = request.layout;
  const PageRows arrays[] = {{layout.side_offset(Side::kKeys), layout.row_bytes()},
                             {layout.side_offset(Side::kValues), layout.row_bytes()}};
  move_slots({request.region.pages, layout.page_tokens, request.slots, request.from, request.to, request.count},
             arrays);
}

}  // namespace foldkv::backend::cpu
