#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace foldkv_lab {

// How one distribution of the next token differs from another, both given as logits. All sums in double precision.
struct Divergence {
  double kl = 0;              // KL(reference || perturbed) in nats
  bool same_top = false;      // both find the same token likeliest (of equals the first)
  double reference_loss = 0;  // -log probability of the target
  double perturbed_loss = 0;
};

// target: the token that the losses are of; -1: none, both are 0. Logits that are not finite are an error.
// Number: float or double.
template <typename Number>
[[nodiscard]] absl::StatusOr<Divergence> compare_logits(std::span<const Number> reference,
                                                        std::span<const Number> perturbed, int64_t target);

// The largest logit's index; of equals the first.
[[nodiscard]] int64_t top_token(std::span<const float> logits);

}  // namespace foldkv_lab
