#pragma once

#include "runtime/cache/prepared.h"
#include "runtime/cache/sequence_policy.h"

namespace foldkv {

// Whether a sequence of this model and profile can evict as its policy says. Argument errors name the field, as
// check_policy does; unsupported errors say what does not go together; a state error says that weights are missing.
[[nodiscard]] Status check_eviction(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy);

}  // namespace foldkv
