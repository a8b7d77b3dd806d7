#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels.h"
#include "backends/interface/operations.h"

// The angles of a rotation. A position is a number of base 128; the angle of each digit is looked up and the digits'
// angles are added by complex products. Every table entry is rounded once from double precision, so that the error
// stays below 1e-6 up to 2^31 positions, which a product position * frequency in f32 loses early.
//
//   lowest digit, tokens in lanes:  cosines [pairs][192] | sines [pairs][192]     digits 0 to 127, 0 to 63 again
//   for each of the five digits:    cosines [digits][pairs] | sines [digits][pairs]
//
// The lowest digit's numbers carry the rotation's scale.
namespace foldkv::backend::cpu {

[[nodiscard]] int64_t rotation_table_bytes(int64_t pairs);
void write_rotation_table(const Rotation& rotation, std::byte* memory);
// The table that lies at rotation.prepared; no pairs without rotation.
[[nodiscard]] RotationTable rotation_table(const Rotation& rotation);

}  // namespace foldkv::backend::cpu
