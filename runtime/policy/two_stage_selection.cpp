#include "runtime/policy/two_stage_selection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "runtime/policy/selection.h"

namespace foldkv {

StatusOr<std::vector<double>> raise_first_stage(std::span<const double> base, std::span<const double> weighted,
                                                std::span<const uint8_t> always, int64_t first) {
  if (weighted.size() != base.size()) {
    return argument_error("weighted",
                          absl::StrCat("weighted: got ", weighted.size(), " tokens, expected ", base.size()));
  }
  if (first < 0) return argument_error("first", absl::StrCat("first: got ", first, ", expected 0 or more"));
  FOLDKV_RETURN_IF_ERROR(check_scores(weighted, always));
  const int64_t kept_always = std::ssize(base) - count_competing(std::ssize(base), always);
  first = std::min(first, std::ssize(base) - kept_always);
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> best, select_tokens(base, always, kept_always + first));
  std::vector<double> raised(weighted.begin(), weighted.end());
  for (const int32_t token : best) raised[static_cast<size_t>(token)] = std::numeric_limits<double>::infinity();
  return raised;
}

StatusOr<int64_t> count_below_mass(std::span<const double> base, std::span<const uint8_t> always, double mass) {
  if (!(mass >= 0.0 && mass <= 1.0)) {
    return argument_error("mass", absl::StrCat("mass: got ", mass, ", expected 0 to 1"));
  }
  FOLDKV_RETURN_IF_ERROR(check_scores(base, always));
  std::vector<double> competing;
  for (size_t t = 0; t < base.size(); ++t) {
    if (!always.empty() && always[t] != 0) continue;
    if (base[t] < 0.0 || std::isinf(base[t])) {
      return argument_error(absl::StrCat("base[", t, "]"),
                            absl::StrCat("base[", t, "]: got ", base[t], ", expected 0 or more"));
    }
    competing.push_back(base[t]);
  }
  std::sort(competing.begin(), competing.end(), std::greater<>());
  const double wanted = mass * std::accumulate(competing.begin(), competing.end(), 0.0);
  double sum = 0.0;
  int64_t count = 0;
  while (count < std::ssize(competing) && (sum += competing[static_cast<size_t>(count)]) < wanted) ++count;
  return count;
}

}  // namespace foldkv
