#include "runtime/calibration/expected_energy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "runtime/calibration/unit_rates.h"

namespace foldkv {
namespace {

// A scale group, or what is not stored: coordinates [first, end) of one side.
class Coordinates {
 public:
  Coordinates(const ProfileSide& side, size_t first, size_t end) : side_(side), first_(first), end_(end) {}

  [[nodiscard]] double energy() const {
    double sum = 0.0;
    for (size_t i = first_; i < end_; ++i) sum += gain(i) * side_.variances[i];
    return sum;
  }
  // Of noise of that variance in every coordinate.
  [[nodiscard]] double even_energy(double variance) const {
    double gains = 0.0;
    for (size_t i = first_; i < end_; ++i) gains += gain(i);
    return gains * variance;
  }
  [[nodiscard]] std::vector<double> variances(bool rotated) const {
    const auto from = side_.variances.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto to = side_.variances.begin() + static_cast<std::ptrdiff_t>(end_);
    if (!rotated) return {from, to};
    return std::vector<double>(end_ - first_, std::accumulate(from, to, 0.0) / static_cast<double>(end_ - first_));
  }

 private:
  [[nodiscard]] double gain(size_t i) const { return side_.gains.empty() ? 1.0 : side_.gains[i]; }

  const ProfileSide& side_;
  size_t first_;
  size_t end_;
};

double lost_energy(const Coordinates& group, const Band& band, bool rotated) {
  if (band.bits == 0) return group.energy();
  if (band.code == backend::Code::kUniform) {
    const double steps = std::pow(2.0, band.bits - 1) - 1.0;  // from zero to the largest coordinate
    const double noise = largest_square(group.variances(rotated)) / (12.0 * steps * steps);
    return std::min(group.even_energy(noise), group.energy());
  }
  const double distortion = distortion_of(band);
  const double variance = group.variances(true).front();
  return distortion * distortion * group.energy() + distortion * (1.0 - distortion) * group.even_energy(variance);
}

double lost_energy(const ProfileSide& side, const std::vector<Band>& bands, size_t scale_group, bool rotated) {
  double lost = 0.0;
  size_t band_first = 0;
  for (const Band& band : bands) {
    const size_t band_end = band_first + static_cast<size_t>(band.width);
    for (size_t first = band_first; first < band_end; first += scale_group) {
      lost += lost_energy(Coordinates(side, first, std::min(first + scale_group, band_end)), band, rotated);
    }
    band_first = band_end;
  }
  return lost + Coordinates(side, band_first, side.variances.size()).energy();
}

}  // namespace

// E[max] is the integral of P(max z_i^2 > s^2) = 1 - prod erf(s / sqrt(2 v_i)) over s^2, here by Simpson's rule over s.
double largest_square(std::span<const double> variances) {
  constexpr int kIntervals = 64;
  constexpr double kLargestDeviation = 8.0;
  const double largest = variances.empty() ? 0.0 : *std::max_element(variances.begin(), variances.end());
  if (largest <= 0.0) return 0.0;
  const double step = kLargestDeviation * std::sqrt(largest) / kIntervals;
  double sum = 0.0;
  for (int node = 1; node <= kIntervals; ++node) {
    const double s = node * step;
    double below = 1.0;
    for (size_t i = 0; i < variances.size(); ++i) {
      if (variances[i] > 0.0) below *= std::erf(s / std::sqrt(2.0 * variances[i]));
    }
    const double weight = node == kIntervals ? 1.0 : node % 2 == 1 ? 4.0 : 2.0;
    sum += weight * 2.0 * s * (1.0 - below);
  }
  return sum * step / 3.0;
}

SideEnergy expected_energy(const ProfileSide& side, const std::vector<Band>& bands, int64_t scale_group,
                           bool rotated) {
  if (!side.projection.empty() && side.gains.empty()) return {};
  return {Coordinates(side, 0, side.variances.size()).energy(),
          lost_energy(side, bands, static_cast<size_t>(scale_group), rotated)};
}

Energies expected_energy(const Profile& profile, const Plan& plan) {
  Energies sums;
  std::array<bool, 2> known = {true, true};
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    const ProfileGroup& group = profile.groups[index];
    const Energies of_group = {expected_energy(group.keys, plan.groups[index].keys, group.scale_group, group.rotated),
                               expected_energy(group.values, plan.groups[index].values, group.scale_group,
                                                 group.rotated)};
    for (size_t side = 0; side < sums.size(); ++side) {
      known[side] = known[side] && of_group[side].total > 0.0;
      sums[side] += of_group[side];
    }
  }
  for (size_t side = 0; side < sums.size(); ++side) {
    if (!known[side]) sums[side] = {};
  }
  return sums;
}

}  // namespace foldkv
