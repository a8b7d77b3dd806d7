#pragma once

#include <cstdint>
#include <memory>

#include "runtime/cache/sequence_policy.h"
#include "runtime/cache/step.h"

namespace foldkv {

struct EstimateQuestion {
  SequencePolicy policy;
  StepRules rules;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
};

struct Estimate {
  int64_t sequence_bytes = 0;  // at the end
  int64_t shared_bytes = 0;    // prepared model and profile
  int64_t held_bytes = 0;      // highest between steps
  int64_t peak_bytes = 0;      // highest sequence bytes plus scratch on the way
};

// Runs the storage and scratch code of real steps on a counting allocator: the prompt in one step, then one token
// a step. profile may be null.
[[nodiscard]] StatusOr<Estimate> estimate_sequence(const Runtime& runtime, const std::shared_ptr<const Model>& model,
                                                   const std::shared_ptr<const Profile>& profile,
                                                   const EstimateQuestion& question);

}  // namespace foldkv
