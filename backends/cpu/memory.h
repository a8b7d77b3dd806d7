#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"

// Memory straight from the operating system: zero, and physical only once touched.
namespace foldkv::backend::cpu {

[[nodiscard]] int64_t system_page_bytes();
[[nodiscard]] StatusOr<std::byte*> reserve_system_memory(int64_t bytes);
void release_system_memory(std::byte* memory, int64_t bytes);
void discard_system_memory(std::byte* memory, int64_t bytes);

}  // namespace foldkv::backend::cpu
