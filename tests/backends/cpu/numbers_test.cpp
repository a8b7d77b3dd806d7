#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/base/number_format.h"
#include "tests/backends/cpu/instruction_sets.h"
#include "tests/support/number_io.h"
#include "tests/support/random.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kAllHalves = 65536;

float scalar_from_half(NumberFormat format, uint16_t half) {
  return format == NumberFormat::kF16 ? f32_from_f16(half) : f32_from_bf16(half);
}
uint16_t scalar_to_half(NumberFormat format, float number) {
  return format == NumberFormat::kF16 ? f16_from_f32(number) : bf16_from_f32(number);
}
bool is_nan(NumberFormat format, uint16_t half) { return std::isnan(scalar_from_half(format, half)); }

std::vector<uint16_t> all_halves() {
  std::vector<uint16_t> halves;
  for (int64_t bits = 0; bits < kAllHalves; ++bits) halves.push_back(static_cast<uint16_t>(bits));
  return halves;
}

// Every number of the format, every number half way between two of them, and the f32 numbers next to each: rounding
// is monotonic, so these are all that can go wrong.
std::vector<float> edges_of_rounding(NumberFormat format) {
  std::vector<float> numbers;
  for (const uint16_t half : all_halves()) {
    if (is_nan(format, half)) continue;
    const float number = scalar_from_half(format, half);
    const float next = scalar_from_half(format, static_cast<uint16_t>(half + 1));
    const double halfway = (static_cast<double>(number) + static_cast<double>(next)) / 2;
    for (const float edge : {number, static_cast<float>(halfway)}) {
      if (!std::isfinite(edge)) continue;
      numbers.push_back(edge);
      numbers.push_back(std::nextafter(edge, std::numeric_limits<float>::infinity()));
      numbers.push_back(std::nextafter(edge, -std::numeric_limits<float>::infinity()));
    }
  }
  const float largest = std::numeric_limits<float>::max();
  for (const float number : {65504.0f, 65519.9f, 65520.0f, 1e20f, largest, std::numeric_limits<float>::infinity()}) {
    numbers.push_back(number);
    numbers.push_back(-number);
  }
  return numbers;
}

TEST_CASE("16-bit numbers to f32: every one of them") {
  const std::vector<uint16_t> halves = all_halves();
  test::for_each_kernel_set([&](const Kernels& kernels) {
    for (const NumberFormat format : {NumberFormat::kF16, NumberFormat::kBF16}) {
      std::vector<float> numbers(halves.size());
      kernels.to_f32(format, halves.data(), kAllHalves, numbers.data());
      int64_t wrong = 0;
      for (size_t i = 0; i < halves.size(); ++i) {
        const float expected = scalar_from_half(format, halves[i]);
        const bool same = std::bit_cast<uint32_t>(numbers[i]) == std::bit_cast<uint32_t>(expected);
        if (!same && !(std::isnan(expected) && std::isnan(numbers[i]))) ++wrong;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("f32 to 16-bit numbers: every edge of rounding") {
  for (const NumberFormat format : {NumberFormat::kF16, NumberFormat::kBF16}) {
    const std::vector<float> numbers = edges_of_rounding(format);
    test::for_each_kernel_set([&](const Kernels& kernels) {
      std::vector<uint16_t> halves(numbers.size());
      CHECK_FALSE(kernels.from_f32(format, numbers.data(), static_cast<int64_t>(numbers.size()), halves.data()));
      int64_t wrong = 0;
      for (size_t i = 0; i < numbers.size(); ++i) wrong += halves[i] != scalar_to_half(format, numbers[i]) ? 1 : 0;
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("rows of any length: nothing beyond them is read or written, a bad number is seen wherever it stands") {
  test::Random random(1);
  test::for_each_kernel_set([&](const Kernels& kernels) {
    for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
      for (int64_t count = 1; count <= 40; ++count) {
        std::vector<float> numbers = random.normals<float>(count);
        test::MemoryBlock stored(count * bytes_of(format), test::kPoison);
        CHECK(kernels.from_f32(format, numbers.data(), count, stored.data()));
        CHECK(kernels.all_finite(format, stored.data(), count));
        std::vector<float> back(static_cast<size_t>(count) + 1, 7.0f);
        kernels.to_f32(format, stored.data(), count, back.data());
        CHECK(back.back() == 7.0f);
        for (int64_t i = 0; i < count; ++i) {
          CHECK(back[static_cast<size_t>(i)] == number_at(format, stored.data(), i));
        }
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
          const int64_t place = random.between(0, count - 1);
          const float kept = std::exchange(numbers[static_cast<size_t>(place)], bad);
          CHECK_FALSE(kernels.from_f32(format, numbers.data(), count, stored.data()));
          CHECK_FALSE(kernels.all_finite(format, stored.data(), count));
          numbers[static_cast<size_t>(place)] = kept;
        }
        CHECK(stored.canary_alive());
      }
    }
  });
}

}  // namespace
}  // namespace foldkv::backend::cpu
