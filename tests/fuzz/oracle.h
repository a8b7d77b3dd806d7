#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "foldkv/foldkv.h"

// What a fuzz target says besides not crashing.
namespace foldkv::fuzz {

// Inputs that got past the reader so far. The replay driver fails when no file of the corpus does: such a corpus tests
// the first check alone.
inline int64_t accepted = 0;

// Bytes from outside may be refused with any status but these: a fault of the library, or memory asked for that the
// bytes cannot fill.
inline bool allowed(foldkv_status status) {
  if (status == FOLDKV_E_INTERNAL || status == FOLDKV_E_MEMORY) {
    std::fprintf(stderr, "a call returned %s\n", foldkv_status_name(status));
    std::abort();
  }
  return status == FOLDKV_OK;
}

inline void must(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "this should hold: %s\n", what);
  std::abort();
}

}  // namespace foldkv::fuzz
