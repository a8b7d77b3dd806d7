#pragma once

#include <vector>

#include "runtime/cache/sequence_storage.h"

namespace foldkv {

struct DueQuestion {
  StorageChange change;           // not published yet
  bool prompt_ends = false;       // the change closes the prompt
  bool prompt_continues = false;  // more of it follows: nothing is decided yet
  bool asked = false;             // by the host
};

// The exact sets that hold more than their eviction policy lets them, so that they are cut now. At the end of a prompt,
// and when the host asks, one token too many is enough; otherwise it takes `interval`. Without an interval only the
// prompt's end counts. Sets of grouped layers are cut only when a run becomes latents, for exact tokens are sinks, recent
// ones, and those that wait for it.
[[nodiscard]] std::vector<bool> due_sets(const SequencePolicy& policy, const SequenceStorage& storage,
                                         const DueQuestion& question);

// Tokens of an exact set before the change's encoding and eviction, those of its latent set included.
[[nodiscard]] int64_t tokens_before(const SequenceStorage& storage, const ExactSet& set, const StorageChange& change);

}  // namespace foldkv
