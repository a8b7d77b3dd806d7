#include "samples/lab/divergence.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

// log of the sum of exponentials.
template <typename Number>
absl::StatusOr<double> log_sum_exp(std::span<const Number> logits) {
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const Number logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double result = largest + std::log(sum);
  // A NaN or infinity anywhere reaches the result.
  if (!std::isfinite(result)) return absl::OutOfRangeError("logits hold a number that is not finite");
  return result;
}

template <typename Number>
int64_t largest_index(std::span<const Number> numbers) {
  return std::max_element(numbers.begin(), numbers.end()) - numbers.begin();
}

}  // namespace

template <typename Number>
absl::StatusOr<Divergence> compare_logits(std::span<const Number> reference, std::span<const Number> perturbed,
                                          int64_t target) {
  if (reference.empty() || reference.size() != perturbed.size() || target < -1 ||
      target >= static_cast<int64_t>(reference.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("comparing ", reference.size(), " logits with ", perturbed.size(), ", target ", target));
  }
  LAB_ASSIGN_OR_RETURN(const double reference_total, log_sum_exp(reference));
  LAB_ASSIGN_OR_RETURN(const double perturbed_total, log_sum_exp(perturbed));
  Divergence result;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double reference_log = static_cast<double>(reference[i]) - reference_total;
    const double perturbed_log = static_cast<double>(perturbed[i]) - perturbed_total;
    result.kl += std::exp(reference_log) * (reference_log - perturbed_log);
  }
  result.same_top = largest_index(reference) == largest_index(perturbed);
  if (target >= 0) {
    const size_t index = static_cast<size_t>(target);
    result.reference_loss = reference_total - static_cast<double>(reference[index]);
    result.perturbed_loss = perturbed_total - static_cast<double>(perturbed[index]);
  }
  return result;
}

template absl::StatusOr<Divergence> compare_logits(std::span<const float>, std::span<const float>, int64_t);
template absl::StatusOr<Divergence> compare_logits(std::span<const double>, std::span<const double>, int64_t);

int64_t top_token(std::span<const float> logits) { return largest_index(logits); }

}  // namespace foldkv_lab
