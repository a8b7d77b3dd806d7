#pragma once

#include <span>

#include "runtime/base/status.h"

namespace foldkv {

// KL(softmax(reference) || softmax(perturbed)) in nats, all sums in double precision by log-softmax; what rounding
// makes negative is 0. Logits of minus infinity are tokens that are ruled out. Numeric error: NaN, plus infinity,
// nothing but minus infinities, a token that only perturbed rules out. Number: float or double; both have the same
// size, 1 or more.
template <typename Number>
[[nodiscard]] StatusOr<double> divergence_of_logits(std::span<const Number> reference,
                                                    std::span<const Number> perturbed);

}  // namespace foldkv
