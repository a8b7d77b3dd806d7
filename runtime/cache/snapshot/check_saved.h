#pragma once

#include "runtime/cache/sequence.h"
#include "runtime/cache/snapshot/snapshot_generated.h"

namespace foldkv {

// What a new sequence of this policy must be told of its counts, checked so that no later call reads beyond what there
// is. Corrupt errors.
[[nodiscard]] StatusOr<StorageCounts> read_counts(const file::SavedSequence& saved, const Sequence& sequence);
[[nodiscard]] StatusOr<SequenceLife> read_life(const file::SavedSequence& saved);
// The pages, once they are there: positions rise and lie before the next one, scores are finite.
[[nodiscard]] Status check_tokens(const Sequence& sequence);

}  // namespace foldkv
