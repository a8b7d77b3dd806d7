#include "runtime/base/number_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "doctest/doctest.h"
#include "runtime/base/tensor_view.h"

namespace foldkv {
namespace {

// A format by its definition: a sign, so many bits of significand (the hidden one included), least and largest
// exponent.
struct Format {
  int significand_bits;
  int min_exponent;
  int max_exponent;
};
constexpr Format kHalf = {11, -14, 15};
constexpr Format kBrain = {8, -126, 127};

// The nearest number of the format, ties to even, in double arithmetic, where each step is exact.
double round_to(const Format& format, double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const double step = std::ldexp(1.0, exponent - format.significand_bits + 1);
  const double rounded = std::nearbyint(value / step) * step;
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, 1 - format.significand_bits), format.max_exponent);
  if (std::abs(rounded) <= largest) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double value_of(const Format& format, int fraction_bits, uint16_t bits) {
  const int exponent_mask = (1 << (15 - fraction_bits)) - 1;
  const int exponent = (bits >> fraction_bits) & exponent_mask;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == exponent_mask) return sign * (fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan(""));
  if (exponent == 0) return sign * std::ldexp(fraction, format.min_exponent - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - 1 + format.min_exponent - fraction_bits);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

// Visits about a million floats of all exponents and both signs, specials among them.
template <typename Check>
int64_t count_failures_over_floats(const Check& check) {
  int64_t failures = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    if (!check(std::bit_cast<float>(static_cast<uint32_t>(bits)))) ++failures;
  }
  for (uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u, 0x7f800001u, 0x80000000u, 0x7f7fffffu}) {
    if (!check(std::bit_cast<float>(bits))) ++failures;
  }
  return failures;
}

TEST_CASE("every half becomes the number that its bits mean, and comes back") {
  int64_t wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float number = f32_from_f16(half);
    if (!same(number, value_of(kHalf, 10, half))) ++wrong;
    if (std::isnan(number) ? !std::isnan(f32_from_f16(f16_from_f32(number))) : f16_from_f32(number) != half) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every bf16 becomes the number that its bits mean, and comes back") {
  int64_t wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto brain = static_cast<uint16_t>(bits);
    const float number = f32_from_bf16(brain);
    if (!same(number, value_of(kBrain, 7, brain))) ++wrong;
    if (std::isnan(number) ? !std::isnan(f32_from_bf16(bf16_from_f32(number))) : bf16_from_f32(number) != brain) {
      ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats round to the nearest half and bf16, ties to even") {
  CHECK(count_failures_over_floats(
            [](float number) { return same(f32_from_f16(f16_from_f32(number)), round_to(kHalf, number)); }) == 0);
  CHECK(count_failures_over_floats(
            [](float number) { return same(f32_from_bf16(bf16_from_f32(number)), round_to(kBrain, number)); }) == 0);
}

TEST_CASE("the middle between two halves, and the floats beside it, go where they should") {
  int64_t wrong = 0;
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const float low = f32_from_f16(half);
    const float high = f32_from_f16(static_cast<uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;  // exact: one bit more than a half has
    const auto even = static_cast<uint16_t>((half & 1) == 0 ? half : half + 1);
    if (f16_from_f32(middle) != even || f16_from_f32(-middle) != (even | 0x8000)) ++wrong;
    if (f16_from_f32(std::nextafter(middle, low)) != half) ++wrong;
    if (f16_from_f32(std::nextafter(middle, high)) != half + 1) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the middle between two bf16 numbers, and the floats beside it, go where they should") {
  int64_t wrong = 0;
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const uint32_t middle = (bits << 16) | 0x8000u;
    const uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
    if (bf16_from_f32(std::bit_cast<float>(middle)) != even) ++wrong;
    if (bf16_from_f32(std::bit_cast<float>(middle - 1)) != bits) ++wrong;
    if (bf16_from_f32(std::bit_cast<float>(middle + 1)) != bits + 1) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("numbers beyond a format become infinite") {
  CHECK(f16_from_f32(65504.0f) == 0x7bff);
  CHECK(f16_from_f32(65519.996f) == 0x7bff);
  CHECK(f16_from_f32(65520.0f) == 0x7c00);
  CHECK(f16_from_f32(-1e30f) == 0xfc00);
  CHECK(f16_from_f32(0x1p-25f) == 0);  // half of the smallest: to even
  CHECK(f16_from_f32(std::nextafter(0x1p-25f, 1.0f)) == 1);
  CHECK(bf16_from_f32(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(bf16_from_f32(-std::numeric_limits<float>::max()) == 0xff80);
}

TEST_CASE("sizes and names of the formats") {
  CHECK(bytes_of(NumberFormat::kF32) == 4);
  CHECK(bytes_of(NumberFormat::kF16) == 2);
  CHECK(bytes_of(NumberFormat::kBF16) == 2);
  CHECK(std::string(name_of(NumberFormat::kF32)) == "f32");
  CHECK(std::string(name_of(NumberFormat::kF16)) == "f16");
  CHECK(std::string(name_of(NumberFormat::kBF16)) == "bf16");
}

TEST_CASE("views find their rows and numbers") {
  const uint16_t halves[] = {0x3c00, 0x4000, 0, 0x4200, 0x4400, 0};  // 1 2 - / 3 4 -
  const TensorView view = {reinterpret_cast<const std::byte*>(halves), NumberFormat::kF16, 2, 2, 3};
  CHECK(view.present());
  CHECK(number_at(view.format, view.row(0), 1) == 2.0f);
  CHECK(number_at(view.format, view.row(1), 0) == 3.0f);
  const TensorView last = view.rows(1, 1);
  CHECK(last.row_count == 1);
  CHECK(number_at(last.format, last.row(0), 1) == 4.0f);
  CHECK_FALSE(TensorView{}.present());
  const float number = 0.1f;
  CHECK(number_at(NumberFormat::kF32, reinterpret_cast<const std::byte*>(&number), 0) == 0.1f);
  const uint16_t brain = bf16_from_f32(-3.0f);
  CHECK(number_at(NumberFormat::kBF16, reinterpret_cast<const std::byte*>(&brain), 0) == -3.0f);
}

}  // namespace
}  // namespace foldkv
