#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/cache/estimate.h"

namespace foldkv {

// What the caches of some sequences shall take and cost. Zero: no such wish.
struct CacheWish {
  EstimateQuestion life;         // of each sequence; the plan and the budget of tokens in its policy are not looked at
  int64_t sequences = 1;
  int64_t budget_bytes = 0;      // of all of them and of what they share, one step at a time
  double bytes_per_token = 0.0;  // at most, of latents
  double ratio = 0.0;            // at least, of 16-bit keys and values to latents
  double highest_cost = 0.0;     // expected cost at most
  double highest_divergence = 0.0;  // on held-out text at most; plans that were not measured do not fulfil it
  double lowest_keep_ratio = 0.0;   // of the prompt, where the budget does not hold it whole
};

// Bytes of all sequences: what they share once, all but one of them at their largest between steps, and one in a step.
struct CacheBytes {
  int64_t sequence = 0;  // one of them between steps, at its largest
  int64_t shared = 0;
  int64_t total = 0;
};

struct PlanChoice {
  int64_t plan = 0;
  int64_t bytes_per_token = 0;
  double expected_cost = 0.0;
  int64_t tokens_kept = 0;  // of the prompt of each sequence
  double keep_ratio = 1.0;  // tokens_kept / prompt tokens
  CacheBytes bytes;         // with tokens_kept
  std::string explanation;
};

// The plan with the least expected cost that fulfils every wish; with highest_cost or highest_divergence the smallest
// instead. When the budget holds none of the plans that fulfil the other wishes, a share of the prompt: tokens_kept fit and
// one more does not, under the plan of least expected cost that keeps lowest_keep_ratio, or under the smallest when none
// does or no such ratio is wished. With an eviction policy the prompt is fed whole and tokens_kept is the policy's budget;
// without one the host must feed less. Ties go to the lower index.
// Argument error when no plan fulfils the wishes ("wish.ratio": by how much), budget error when not even one token (or
// what the policy always keeps) fits.
[[nodiscard]] StatusOr<PlanChoice> choose_plan(const Runtime& runtime, const std::shared_ptr<const Model>& model,
                                               const std::shared_ptr<const Profile>& profile, const CacheWish& wish);

}  // namespace foldkv
