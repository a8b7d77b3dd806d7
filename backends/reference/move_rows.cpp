#include "backends/reference/move_rows.h"

#include <cstring>

#include "backends/reference/exact_row.h"

namespace foldkv::backend::reference {

// Rising order reads every row before it is overwritten, since rows only move down.
void move_rows(const MoveRequest& request) {
  for (int64_t i = 0; i < request.count; ++i) {
    const int64_t slot = request.slot(i);
    if (slot == request.to + i) continue;
    for (const Side side : {Side::kKeys, Side::kValues}) {
      std::memcpy(exact_row(request.layout, request.region.pages, request.to + i, side),
                  exact_row(request.layout, request.region.pages, slot, side),
                  static_cast<size_t>(request.layout.row_bytes()));
    }
  }
}

}  // namespace foldkv::backend::reference
