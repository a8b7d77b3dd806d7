#pragma once

#include "runtime/cache/sequence_policy.h"
#include "runtime/cache/snapshot/snapshot_generated.h"

namespace foldkv {

// A sequence's policy in a snapshot, without its plan.
[[nodiscard]] file::SavedPolicyT record_policy(const SequencePolicy& policy);
// Checked as the options of a new sequence are, since it comes from a file. Corrupt error.
[[nodiscard]] StatusOr<SequencePolicy> read_policy(const file::SavedPolicy& saved, const Model& model);

}  // namespace foldkv
