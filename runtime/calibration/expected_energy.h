#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/profile/profile.h"

namespace foldkv {

// Squared lengths of rows of one side.
struct SideEnergy {
  double total = 0.0;  // of their distances from the mean that is subtracted
  double lost = 0.0;   // of their distances from what their latents rebuild

  // 0 when nothing is known.
  [[nodiscard]] double share_lost() const { return total > 0.0 ? lost / total : 0.0; }
  SideEnergy& operator+=(const SideEnergy& other) {
    total += other.total;
    lost += other.lost;
    return *this;
  }
};

// Of keys and of values, apart: keys have many times the energy of values, and in one figure values would not be seen.
using Energies = std::array<SideEnergy, 2>;

// What a row of the calibration text has and loses under bands, on average. Zeros when the profile does not know: with a
// projection of its own and no gains (files of before they were kept).
//
// The row is the mean plus sum of z_i b_i, with uncorrelated z_i of variance v_i and gains g_i = |b_i|^2: its energy is
// sum g_i v_i. A scale group whose code leaves the share D of a Gaussian's variance is taken for the test channel of
// rate distortion theory at the group's mean variance v: what remains of z_i has the variance D^2 v_i + D (1 - D) v.
// Rotation inside scale groups changes nothing in this, since it evens out the v_i that the code sees, but not the
// sums over the group. The correction of keys is left out.
[[nodiscard]] SideEnergy expected_energy(const ProfileSide& side, const std::vector<Band>& bands, int64_t scale_group);

// Summed over the groups; a side that some group does not know is zero.
[[nodiscard]] Energies expected_energy(const Profile& profile, const Plan& plan);

}  // namespace foldkv
