#include "runtime/calibration/group_weights.h"

#include <cmath>
#include <cstddef>

namespace foldkv {
namespace {

Status check_numbers(absl::string_view name, const SideNumbers& numbers) {
  for (size_t group = 0; group < numbers.size(); ++group) {
    for (size_t side = 0; side < 2; ++side) {
      const double number = numbers[group][side];
      if (number > 0.0 && std::isfinite(number)) continue;
      return argument_error(absl::StrCat(name, "[", group, "][", side, "]"),
                            absl::StrCat(name, "[", group, "][", side, "]: got ", number, ", expected above 0"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<SideNumbers> group_weights(const SideNumbers& measured, const SideNumbers& expected) {
  FOLDKV_RETURN_IF_ERROR(check_numbers("measured", measured));
  FOLDKV_RETURN_IF_ERROR(check_numbers("expected", expected));
  SideNumbers weights(measured.size());
  double sum = 0.0;
  for (size_t group = 0; group < measured.size(); ++group) {
    for (size_t side = 0; side < 2; ++side) sum += weights[group][side] = measured[group][side] / expected[group][side];
  }
  const double mean = sum / static_cast<double>(2 * measured.size());
  for (std::array<double, 2>& sides : weights) {
    for (double& weight : sides) weight /= mean;
  }
  FOLDKV_RETURN_IF_ERROR(check_numbers("weights", weights));  // quotients may leave the range of numbers
  return weights;
}

}  // namespace foldkv
