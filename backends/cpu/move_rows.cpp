#include <algorithm>
#include <cstring>

#include "backends/cpu/rows.h"

namespace foldkv::backend::cpu {
namespace {

struct Place {
  int64_t page;
  int64_t row;
};

Place place_of(const ExactLayout& layout, int64_t slot) {
  return {slot / layout.page_tokens, slot % layout.page_tokens};
}

}  // namespace

// Rising slots: what a run overwrites has been read before, since rows move down.
void move_rows(const MoveRequest& request) {
  const ExactLayout& layout = request.layout;
  if (request.from == request.to) return;
  for (int64_t done = 0; done < request.count;) {
    const Place from = place_of(layout, request.from + done);
    const Place to = place_of(layout, request.to + done);
    const int64_t run = std::min({request.count - done, layout.page_tokens - from.row, layout.page_tokens - to.row});
    for (const Side side : {Side::kKeys, Side::kValues}) {
      const int64_t offset = layout.side_offset(side);
      std::memmove(request.region.pages[to.page] + offset + to.row * layout.row_bytes(),
                   request.region.pages[from.page] + offset + from.row * layout.row_bytes(),
                   static_cast<size_t>(run * layout.row_bytes()));
    }
    done += run;
  }
}

}  // namespace foldkv::backend::cpu
