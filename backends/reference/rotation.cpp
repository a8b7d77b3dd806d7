#include "backends/reference/rotation.h"

#include <cmath>

namespace foldkv::backend::reference {

void rotate_heads(const Rotation& rotation, int64_t position, int64_t heads, int64_t head_size, double* token) {
  const bool half_split = rotation.pairing == Pairing::kHalfSplit;
  for (int64_t f = 0; f < rotation.frequency_count; ++f) {
    const double angle = static_cast<double>(position) * rotation.inverse_frequencies[f];
    const double cosine = rotation.scale * std::cos(angle);
    const double sine = rotation.scale * std::sin(angle);
    const int64_t first = half_split ? f : 2 * f;
    const int64_t second = half_split ? f + rotation.frequency_count : 2 * f + 1;
    for (int64_t head = 0; head < heads; ++head) {
      double* const x = token + head * head_size;
      const double a = x[first];
      const double b = x[second];
      x[first] = a * cosine - b * sine;
      x[second] = a * sine + b * cosine;
    }
  }
}

}  // namespace foldkv::backend::reference
