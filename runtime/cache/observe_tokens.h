#pragma once

#include <cstdint>

#include "runtime/cache/sequence.h"

namespace foldkv {

// Hands exact tokens [first_token, first_token + count) of the sequence, which has no profile, to its calibrator.
// Slots may be unpublished.
[[nodiscard]] Status observe_tokens(const Sequence& sequence, int64_t first_token, int64_t count);

}  // namespace foldkv
