#include "backends/reference/quantizer.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

StatusOr<uint16_t> quantize_group(const float* numbers, int64_t count, int32_t bits, int32_t* codes) {
  double largest = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(numbers[i]))
      return numeric_error(absl::StrCat("latent coordinate ", i, " of a scale group is not finite"));
    largest = std::max(largest, std::abs(static_cast<double>(numbers[i])));
  }
  const int32_t limit = largest_code(bits);
  // Rounding to f32 on the way to f16 changes nothing: a quotient of an f32 number by 2^k - 1 that is not a midpoint
  // of two halves is too far from it to be rounded onto it.
  const uint16_t scale = f16_from_f32(static_cast<float>(largest / limit));
  const double step = double_from_f16(scale);
  if (!std::isfinite(step)) {
    return numeric_error(
        absl::StrCat("a latent of magnitude ", largest, " needs a scale beyond f16 at ", bits, " bits"));
  }
  for (int64_t i = 0; i < count; ++i) {
    const double steps = step == 0.0 ? 0.0 : std::nearbyint(static_cast<double>(numbers[i]) / step);
    codes[i] = static_cast<int32_t>(std::clamp(steps, static_cast<double>(-limit), static_cast<double>(limit)));
  }
  return scale;
}

double dequantize(int32_t code, uint16_t scale) { return static_cast<double>(code) * double_from_f16(scale); }

}  // namespace foldkv::backend::reference
