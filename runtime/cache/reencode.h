#pragma once

#include <cstdint>

#include "runtime/cache/sequence.h"

namespace foldkv {

// Writes what a group's latents rebuild to pages of another plan, token by token in the same order: means, bases and
// the basis of the correction stay, and coefficients are found anew. Pages have room for all latents of the group.
[[nodiscard]] Status reencode(const Sequence& sequence, int64_t group, size_t plan, const PageList& pages);
// Scratch that it takes, of any group.
[[nodiscard]] int64_t reencode_bytes(const Sequence& sequence, size_t plan);

}  // namespace foldkv
