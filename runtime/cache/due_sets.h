#pragma once

#include <vector>

#include "runtime/cache/sequence_storage.h"

namespace foldkv {

// When tokens may be evicted.
struct EvictionMoment {
  StorageChange change;           // that was, or will be, reserved
  bool prompt_ends = false;       // the change closes the prompt
  bool prompt_continues = false;  // more of it follows: nothing is decided yet
  bool asked = false;             // by the host, and not because enough tokens have come
};

// The exact sets that hold more than their eviction policy lets them, so that they are cut now. At the end of a prompt,
// and when the host asks, one token too many is enough; otherwise it takes `interval`. Without an interval only the
// prompt's end counts. Sets of grouped layers are cut only when a run becomes latents, for exact tokens are sinks, recent
// ones, and those that wait for it.
[[nodiscard]] std::vector<bool> due_sets(const SequencePolicy& policy, const SequenceStorage& storage,
                                         const EvictionMoment& moment);

}  // namespace foldkv
