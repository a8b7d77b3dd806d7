#include "runtime/calibration/expected_energy.h"

#include <algorithm>
#include <cstddef>

#include "runtime/calibration/unit_rates.h"

namespace foldkv {
namespace {

// Coordinates [first, end) of one side.
struct Coordinates {
  const ProfileSide& side;
  size_t first;
  size_t end;

  [[nodiscard]] double gain(size_t i) const { return side.gains.empty() ? 1.0 : side.gains[i]; }
  [[nodiscard]] double energy() const {
    double sum = 0.0;
    for (size_t i = first; i < end; ++i) sum += gain(i) * side.variances[i];
    return sum;
  }
  // What noise of the coordinates' mean variance has in rows.
  [[nodiscard]] double even_energy() const {
    double gains = 0.0;
    double variance = 0.0;
    for (size_t i = first; i < end; ++i) {
      gains += gain(i);
      variance += side.variances[i];
    }
    return gains * variance / static_cast<double>(end - first);
  }
};

double lost_energy(const ProfileSide& side, const std::vector<Band>& bands, size_t scale_group) {
  double lost = 0.0;
  size_t band_first = 0;
  for (const Band& band : bands) {
    const size_t band_end = band_first + static_cast<size_t>(band.width);
    const double distortion = distortion_of(band);
    for (size_t first = band_first; first < band_end; first += scale_group) {
      const Coordinates group{side, first, std::min(first + scale_group, band_end)};
      lost += distortion * distortion * group.energy() + distortion * (1.0 - distortion) * group.even_energy();
    }
    band_first = band_end;
  }
  return lost + Coordinates{side, band_first, side.variances.size()}.energy();
}

}  // namespace

SideEnergy expected_energy(const ProfileSide& side, const std::vector<Band>& bands, int64_t scale_group) {
  if (!side.projection.empty() && side.gains.empty()) return {};
  return {Coordinates{side, 0, side.variances.size()}.energy(),
          lost_energy(side, bands, static_cast<size_t>(scale_group))};
}

Energies expected_energy(const Profile& profile, const Plan& plan) {
  Energies sums;
  std::array<bool, 2> known = {true, true};
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    const ProfileGroup& group = profile.groups[index];
    const Energies of_group = {expected_energy(group.keys, plan.groups[index].keys, group.scale_group),
                               expected_energy(group.values, plan.groups[index].values, group.scale_group)};
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
