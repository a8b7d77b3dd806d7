#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/random.h"

namespace foldkv::test {

// What random.normals<float>(count, deviation) returns, the same to the last bit, and random is left as that leaves it.
// A row makes its data anew for every run, from the same seed, and drawing normal numbers is most of that work; so each
// thread keeps the last long arrays, with the generators that they began and ended with.
[[nodiscard]] std::vector<float> remembered_normals(Random& random, int64_t count, double deviation = 1.0);

}  // namespace foldkv::test
