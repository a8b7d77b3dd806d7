#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/random.h"

namespace foldkv::test {

// Some of the slots [first, end), rising: each with the given chance.
[[nodiscard]] inline std::vector<int32_t> random_slots(Random& random, int64_t first, int64_t end, double share) {
  std::vector<int32_t> slots;
  for (int64_t slot = first; slot < end; ++slot) {
    if (random.chance(share)) slots.push_back(static_cast<int32_t>(slot));
  }
  return slots;
}

}  // namespace foldkv::test
