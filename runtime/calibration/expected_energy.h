#pragma once

#include <array>
#include <cstdint>
#include <span>
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
// The row is the mean plus sum of z_i b_i, with uncorrelated Gaussian z_i of variance v_i and gains g_i = |b_i|^2: its
// energy is sum g_i v_i.
// Uniform codes: noise of a twelfth of a step's square in every coordinate of a scale group; the step comes from the
// largest coordinate, whose mean square is E = E[max z_i^2] (largest_square).
// Trellis codes, which leave the share D of a variance: the test channel of rate distortion theory at the group's mean
// variance v. What remains of z_i has the variance D^2 v_i + D (1 - D) v.
// Rotation inside a scale group makes all its variances v in what the code sees; sums over the group stay as they are.
// The correction of keys is left out. Takes a few milliseconds for a model of 30 layers.
[[nodiscard]] SideEnergy expected_energy(const ProfileSide& side, const std::vector<Band>& bands,
                                         int64_t scale_group, bool rotated);

// The mean of the largest square of independent Gaussian numbers of these variances, to 1e-3 of itself.
[[nodiscard]] double largest_square(std::span<const double> variances);

// Summed over the groups; a side that some group does not know is zero.
[[nodiscard]] Energies expected_energy(const Profile& profile, const Plan& plan);

}  // namespace foldkv
