#pragma once

#include "abi/guard.h"
#include "abi/handles.h"
#include "runtime/cache/sequence_policy.h"
#include "runtime/cache/step.h"

namespace foldkv::abi {

// Options of sequences and steps with all defaults filled in; null pointers give defaults. profile may be null.
[[nodiscard]] StatusOr<SequencePolicy> read_sequence_options(const foldkv_sequence_options* source, const Model& model,
                                                             const foldkv_profile* profile);
[[nodiscard]] StatusOr<StepRules> read_step_options(const foldkv_step_options* source, absl::string_view argument,
                                                    const Model& model);

}  // namespace foldkv::abi
