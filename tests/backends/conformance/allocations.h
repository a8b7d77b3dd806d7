#pragma once

#include <cstdint>

namespace foldkv::test {

// How often operator new was called in this program, by any thread.
[[nodiscard]] int64_t allocation_count();

}  // namespace foldkv::test
