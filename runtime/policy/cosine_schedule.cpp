#include "runtime/policy/cosine_schedule.h"

#include <cmath>
#include <numbers>

#include "runtime/base/check_range.h"

namespace foldkv {

StatusOr<std::vector<double>> cosine_ratios(int64_t layers, double decay) {
  FOLDKV_RETURN_IF_ERROR(check_range("layers", layers, 0, 65'536));
  if (!(decay >= 0.0 && decay <= 1.0)) {
    return argument_error("decay", absl::StrCat("decay: got ", decay, ", expected 0 to 1"));
  }
  std::vector<double> ratios;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const double angle = std::numbers::pi * static_cast<double>(layer) / static_cast<double>(layers);
    ratios.push_back((1.0 - decay) * (std::cos(angle) + 1.0) / 2.0 + decay);
  }
  return ratios;
}

std::vector<double> compound_shares(std::span<const double> ratios) {
  std::vector<double> shares;
  double share = 1.0;
  for (const double ratio : ratios) shares.push_back(share *= ratio);
  return shares;
}

std::vector<int64_t> compound_counts(std::span<const double> ratios, int64_t tokens) {
  std::vector<int64_t> counts;
  for (const double ratio : ratios) {
    tokens = static_cast<int64_t>(static_cast<double>(tokens) * ratio);
    counts.push_back(tokens);
  }
  return counts;
}

}  // namespace foldkv
