#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define FOLDKV_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FOLDKV_POISONS 1
#endif
#endif

#ifdef FOLDKV_POISONS
#include <sanitizer/asan_interface.h>
#endif

// What of the arena is nobody's: builds with AddressSanitizer stop where it is read or written. Elsewhere this is
// nothing.
namespace foldkv {

inline void poison([[maybe_unused]] const std::byte* memory, [[maybe_unused]] int64_t bytes) {
#ifdef FOLDKV_POISONS
  ASAN_POISON_MEMORY_REGION(memory, static_cast<size_t>(bytes));
#endif
}

inline void unpoison([[maybe_unused]] const std::byte* memory, [[maybe_unused]] int64_t bytes) {
#ifdef FOLDKV_POISONS
  ASAN_UNPOISON_MEMORY_REGION(memory, static_cast<size_t>(bytes));
#endif
}

}  // namespace foldkv
