#include "runtime/calibration/unit_rates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/interface/trellis.h"
#include "runtime/base/checked.h"

namespace foldkv {
namespace {

// A step's square over 12, the step from the largest of 64 Gaussian numbers, whose mean square is 6.9.
double uniform_distortion(int32_t bits) {
  const double largest_code = std::pow(2.0, bits - 1) - 1.0;
  return 6.9 / 12.0 / (largest_code * largest_code);
}

std::vector<UnitRate> make_rates() {
  std::vector<UnitRate> rates;
  for (const backend::TrellisRate& rate : backend::kTrellisRates) {
    rates.push_back({backend::Code::kTrellis, rate.bits, rate.step, rate.distortion});
  }
  for (const int32_t bits : {5, 6, 8}) {
    rates.push_back({backend::Code::kUniform, bits, 1, uniform_distortion(bits)});
  }
  return rates;
}

}  // namespace

int64_t UnitRate::bytes(int64_t count) const {
  return divide_up(divide_up(count, step) * bits, 8) + (code == backend::Code::kTrellis ? 1 : 2);
}

std::span<const UnitRate> unit_rates() {
  static const std::vector<UnitRate> rates = make_rates();
  return rates;
}

double distortion_of(const Band& band) {
  if (band.bits == 0) return 1.0;
  if (band.code == backend::Code::kTrellis) return backend::find_trellis_rate(band.bits, band.step)->distortion;
  return band.code == backend::Code::kHalf ? 0.0 : uniform_distortion(band.bits);
}

}  // namespace foldkv
