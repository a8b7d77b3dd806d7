#pragma once

#include <cstdint>
#include <span>

#include "runtime/codec/band.h"

namespace foldkv {

// A code and rate that bit plans use, and what it leaves of a Gaussian coordinate's variance.
struct UnitRate {
  backend::Code code = backend::Code::kUniform;
  int32_t bits = 0;
  int32_t step = 1;
  double distortion = 0.0;

  // Codes and scale of a unit of that many coordinates.
  [[nodiscard]] int64_t bytes(int64_t count) const;
};

// Bits rising, distortion falling: the trellis up to 4 bits, uniform quantization above.
[[nodiscard]] std::span<const UnitRate> unit_rates();

// What a band leaves of its coordinates' variance; 1 when it is not stored.
[[nodiscard]] double distortion_of(const Band& band);

}  // namespace foldkv
