#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/policy/eviction_policy.h"

namespace foldkv {

// A policy's ratios in whole tokens, for a prompt of so many.
struct PolicyCounts {
  int64_t tokens = 0;
  int64_t rows = 0;    // that are observed: the window's
  int64_t sinks = 0;   // first tokens, kept always
  int64_t recent = 0;  // last tokens, kept always, the window included
  int64_t budget = 0;  // tokens of a KV head and layer on average, those kept always included; at most `tokens`

  [[nodiscard]] int64_t kept_always() const { return sinks + recent; }
  [[nodiscard]] int64_t competing() const { return tokens - kept_always(); }
  bool operator==(const PolicyCounts&) const = default;
};

// The policy has been checked. No budget (kNone, kCosine): all tokens. A window, recent tokens and sinks that overlap
// count once; a budget by ratio is never below what is kept always.
[[nodiscard]] PolicyCounts count_policy_tokens(const EvictionPolicy& policy, int64_t tokens);

// Tokens that each layer keeps in each of its KV heads on average, those kept always included, by the policy's layer
// allocator and `author_rounding`. The sum is layers * budget, but for author_rounding, for the floors of an infeasible
// budget, and for kCosine without a budget, which is its schedule.
//   numbers  [layers], what the allocator weighs layers by; not looked at by kUniform, kPyramid, kCosine:
//            kRipple sensitivities, kCake cake_preference, kLava entropy_weight, kDynamic counts of count_joint_best
//            (all layers), kImportance importances, kCustom weights, kEpisode similarities
// Whether the tokens kept always are part of what is shared out follows the papers: they are for kRipple, kImportance,
// kCustom, kEpisode and kCosine, and come on top for the others.
// Argument errors: "layers" below 1, "numbers" of another length, those of the allocator.
[[nodiscard]] StatusOr<std::vector<int64_t>> layer_budgets(const EvictionPolicy& policy, const PolicyCounts& counts,
                                                           int64_t layers, std::span<const double> numbers);

// Tokens that each KV head of a layer keeps beside those kept always, by the policy's head allocator: `base` on
// average, by the scores that selection will use.
//   scores  [kv_heads][tokens]; always as in select_tokens
// kUniform: base each, or all that compete. kAda, kLava: count_joint_best with head_floor_share of base as floor, or
// ada_author_budgets within the tokens that compete. Argument errors: "base" below 0, those of count_joint_best.
[[nodiscard]] StatusOr<std::vector<int64_t>> head_budgets(const EvictionPolicy& policy, const ScoreTable& scores,
                                                          std::span<const uint8_t> always, int64_t base);

}  // namespace foldkv
