#include "samples/lab/half.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

// By the definition: sign, 5 bits of exponent, 10 of mantissa.
double value_of(uint16_t half) {
  const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  if (exponent == 31) return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST_CASE("all halves widen to their value and come back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const double expected = value_of(half);
    const float widened = half_to_float(half);
    if (std::isnan(expected)) {
      CHECK(std::isnan(widened));
      CHECK((float_to_half(widened) & 0x7fff) > 0x7c00);
      continue;
    }
    CHECK(static_cast<double>(widened) == expected);
    CHECK(float_to_half(widened) == half);
  }
}

TEST_CASE("floats between halves round to the nearest, ties to even") {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const uint16_t lower = static_cast<uint16_t>(bits);
    const uint16_t upper = static_cast<uint16_t>(bits + 1);
    const float middle = static_cast<float>((value_of(lower) + value_of(upper)) / 2);
    CHECK(float_to_half(middle) == (bits % 2 == 0 ? lower : upper));
    CHECK(float_to_half(std::nextafter(middle, 0.0f)) == lower);
    CHECK(float_to_half(std::nextafter(middle, 1e9f)) == upper);
    CHECK(float_to_half(-middle) == ((bits % 2 == 0 ? lower : upper) | 0x8000));
  }
  CHECK(float_to_half(65519.0f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(1e30f) == 0x7c00);
  CHECK(float_to_half(1e-30f) == 0);
}

TEST_CASE("bfloat16 is the upper half of a float") {
  CHECK(bfloat16_to_float(0x3f80) == 1.0f);
  CHECK(bfloat16_to_float(0xc020) == -2.5f);
}

}  // namespace
}  // namespace foldkv_lab::test
