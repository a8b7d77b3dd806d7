#pragma once

#include <cmath>
#include <cstdint>

// Scales of trellis groups: one byte on a logarithmic grid around the group's calibrated spread.
namespace foldkv::backend {

// 2^(1/8) to 2^(7/8), rounded to f32.
inline constexpr float kEighthPowers[8] = {1.0f,       1.0905077f, 1.1892071f, 1.2968396f,
                                           1.4142135f, 1.5422108f, 1.6817929f, 1.8340081f};
inline constexpr int kTrellisScaleCentre = 128;

// 0 for byte 0, else spread * 2^((byte - 128) / 8).
[[nodiscard]] inline float trellis_scale(uint8_t byte, float spread) {
  if (byte == 0) return 0.0f;
  return std::ldexp(spread * kEighthPowers[byte % 8], (byte / 8) - kTrellisScaleCentre / 8);
}

inline constexpr int kTrellisScaleTooLarge = -1;

// The byte whose scale is nearest, on the logarithmic grid, to the root of the mean square of a group's numbers: 0 for
// zero and what is too small for the grid. kTrellisScaleTooLarge beyond the grid, or when the mean square is not finite.
[[nodiscard]] inline int trellis_scale_byte(double mean_square, float spread) {
  // Quarters of an octave of the square are eighths of the root; these are the middles between them.
  constexpr double kMiddles[4] = {0.54525386633262884, 0.64841977732550483, 0.77110541270397037, 0.91700404320467122};
  if (!(mean_square > 0.0)) return mean_square == 0.0 ? 0 : kTrellisScaleTooLarge;
  if (std::isinf(mean_square)) return kTrellisScaleTooLarge;
  int octave = 0;
  const double fraction = std::frexp(mean_square / (static_cast<double>(spread) * static_cast<double>(spread)), &octave);
  int quarter = 0;
  while (quarter < 4 && fraction >= kMiddles[quarter]) ++quarter;
  const int byte = kTrellisScaleCentre + 4 * (octave - 1) + quarter;
  return byte > 255 ? kTrellisScaleTooLarge : byte < 1 ? 0 : byte;
}

}  // namespace foldkv::backend
