#pragma once

#include <cstdint>
#include <vector>

namespace foldkv {

// One way to store a unit of adjacent coordinates.
struct RateChoice {
  double bits = 0.0;        // of the whole unit
  double distortion = 0.0;  // what remains of the unit's variance, 0 to 1
};

struct AllocationUnit {
  double cost = 0.0;                 // variance when nothing is stored, summed over the unit's coordinates
  std::vector<RateChoice> choices;   // bits rising, distortion falling
  bool after_previous = false;       // may not be stored with a later choice than the unit before
  bool stored = false;               // with the first choice at least, whatever it costs
};

// For each unit the index of its choice, -1: not stored, so that the sum of cost * distortion becomes small within
// `budget` bits. Greedy: of all raises of a unit to a later choice that still fit, the one with the largest fall of the
// sum per bit comes first; ties go to the lower unit, then to the earlier choice. Near the optimum of reverse
// water-filling, since every step takes the steepest way (quality.md; golden/bits.json).
[[nodiscard]] std::vector<int32_t> allocate_bits(const std::vector<AllocationUnit>& units, double budget);

}  // namespace foldkv
