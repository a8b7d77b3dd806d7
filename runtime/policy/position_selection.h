#pragma once

#include <cstdint>
#include <vector>

namespace foldkv {

// [tokens]: 1 for the first `sinks` and the last `recent` tokens, 0 for those between. Counts beyond the tokens mean
// all of them; counts are 0 or more.
[[nodiscard]] std::vector<uint8_t> mark_ends(int64_t tokens, int64_t sinks, int64_t recent);

}  // namespace foldkv
