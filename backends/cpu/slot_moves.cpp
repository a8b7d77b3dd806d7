#include "backends/cpu/slot_moves.h"

#include <algorithm>
#include <cstring>

namespace foldkv::backend::cpu {
namespace {

struct Run {
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;
};

// The tokens from index `done` on that lie one after the other, in one page before and after.
Run next_run(const SlotMoves& moves, int64_t done) {
  Run run = {moves.slots == nullptr ? moves.from + done : moves.slots[done], moves.to + done, 0};
  const int64_t most = std::min({moves.count - done, moves.page_tokens - run.from % moves.page_tokens,
                                 moves.page_tokens - run.to % moves.page_tokens});
  run.count = moves.slots == nullptr ? most : 1;
  while (run.count < most && moves.slots[done + run.count] == run.from + run.count) ++run.count;
  return run;
}

}  // namespace

// Rising slots: what a run overwrites has been read before, since rows move down.
void move_slots(const SlotMoves& moves, std::span<const PageRows> arrays) {
  for (int64_t done = 0; done < moves.count;) {
    const Run run = next_run(moves, done);
    done += run.count;
    if (run.from == run.to) continue;
    std::byte* const to = moves.pages[run.to / moves.page_tokens];
    const std::byte* const from = moves.pages[run.from / moves.page_tokens];
    for (const PageRows& rows : arrays) {
      std::memmove(to + rows.offset + run.to % moves.page_tokens * rows.row_bytes,
                   from + rows.offset + run.from % moves.page_tokens * rows.row_bytes,
                   static_cast<size_t>(run.count * rows.row_bytes));
    }
  }
}

}  // namespace foldkv::backend::cpu
