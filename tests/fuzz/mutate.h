#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/random.h"

namespace foldkv::fuzz {

// Changes `size` bytes in place by one to four random edits (a bit, a byte, an extreme number, a piece cut out, doubled
// or moved, a cut end) and returns the new size, at most `capacity` and at least 1.
[[nodiscard]] size_t mutate(uint8_t* data, size_t size, size_t capacity, test::Random& random);

// The start of one input and the end of another.
[[nodiscard]] std::vector<uint8_t> splice(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b,
                                          test::Random& random);

}  // namespace foldkv::fuzz
