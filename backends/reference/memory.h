#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"

// Memory that is zero and takes physical memory only once touched.
namespace foldkv::backend::reference {

[[nodiscard]] StatusOr<std::byte*> reserve_memory(int64_t bytes);
void release_memory(std::byte* memory, int64_t bytes);
void discard_memory(std::byte* memory, int64_t bytes);
[[nodiscard]] int64_t memory_granularity();

}  // namespace foldkv::backend::reference
