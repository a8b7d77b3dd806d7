#include "runtime/calibration/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace foldkv {
namespace {

// log of the sum of exponentials. A NaN or plus infinity anywhere reaches the sum.
template <typename Number>
StatusOr<double> log_sum_exp(std::span<const Number> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const Number logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double result = largest + std::log(sum);
  if (std::isfinite(result)) return result;
  return numeric_error("logits hold NaN or plus infinity, or nothing but minus infinities");
}

}  // namespace

template <typename Number>
StatusOr<double> divergence_of_logits(std::span<const Number> reference, std::span<const Number> perturbed) {
  const StatusOr<double> reference_total = log_sum_exp(reference);
  if (!reference_total.ok()) return with_argument(reference_total.status(), "reference");
  const StatusOr<double> perturbed_total = log_sum_exp(perturbed);
  if (!perturbed_total.ok()) return with_argument(perturbed_total.status(), "perturbed");
  double divergence = 0.0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double reference_log = static_cast<double>(reference[i]) - *reference_total;
    const double probability = std::exp(reference_log);
    if (probability == 0.0) continue;  // adds nothing, whatever perturbed says
    divergence += probability * (reference_log - (static_cast<double>(perturbed[i]) - *perturbed_total));
  }
  if (std::isfinite(divergence)) return std::max(divergence, 0.0);
  return with_argument(numeric_error("rules out a token that reference does not"), "perturbed");
}

template StatusOr<double> divergence_of_logits(std::span<const float>, std::span<const float>);
template StatusOr<double> divergence_of_logits(std::span<const double>, std::span<const double>);

}  // namespace foldkv
