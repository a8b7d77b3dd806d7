#include "runtime/policy/position_selection.h"

#include <algorithm>

namespace foldkv {

std::vector<uint8_t> mark_ends(int64_t tokens, int64_t sinks, int64_t recent) {
  std::vector<uint8_t> marks(static_cast<size_t>(tokens));
  std::fill_n(marks.begin(), std::min(sinks, tokens), uint8_t{1});
  std::fill_n(marks.rbegin(), std::min(recent, tokens), uint8_t{1});
  return marks;
}

}  // namespace foldkv
