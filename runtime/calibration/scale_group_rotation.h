#pragma once

#include <cstdint>
#include <vector>

#include "runtime/profile/profile.h"

namespace foldkv {

// Multiplies a basis [rows][columns] from the right by an orthonormal matrix that mixes coordinates inside each scale
// group and nothing beyond, so that they come to have like spreads. columns: the sum of the bands' widths.
//
// A scale group (a run of scale_group coordinates of a band, the last of a band may be shorter) is cut into blocks that
// are powers of two, the largest first: 128 is one block, 96 is 64 + 32, 100 is 64 + 32 + 4. Each block is turned by
// the Hadamard matrix of its size in Sylvester's order, divided by the root of the size. Bands that are not stored
// stay.
void rotate_scale_groups(std::vector<double>& basis, const std::vector<Band>& bands, int64_t scale_group);

}  // namespace foldkv
