#pragma once

#include "abi/guard.h"
#include "runtime/cache/sequence_policy.h"
#include "runtime/cache/step.h"

namespace foldkv::abi {

// Options of sequences and steps with all defaults filled in; null pointers give defaults.
[[nodiscard]] StatusOr<SequencePolicy> read_sequence_options(const foldkv_sequence_options* source);
[[nodiscard]] StatusOr<StepRules> read_step_options(const foldkv_step_options* source, absl::string_view argument,
                                                    const Model& model);

}  // namespace foldkv::abi
