#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/f16_of_double.h"
#include "runtime/base/checked.h"
#include "tests/backends/cpu/instruction_sets.h"
#include "tests/support/golden.h"
#include "tests/support/latent_pages.h"
#include "tests/support/random.h"

namespace foldkv::backend::cpu {
namespace {

struct Quantized {
  uint32_t scale = 0;
  std::vector<int32_t> codes;
};

Quantized quantize(const Kernels& kernels, const std::vector<float>& latents, int bits) {
  const auto count = static_cast<int64_t>(latents.size());
  const LatentPlane plane = test::make_plane({{count, bits}}, count);
  const test::LatentPages pages(test::make_layout(plane, plane, 0, 1), 1, test::kZero);
  auto* codes = reinterpret_cast<uint8_t*>(pages.codes(Side::kKeys, 0));
  Quantized result;
  result.scale = kernels.quantize_group({.latents = latents.data(), .count = count, .bits = bits, .codes = codes});
  for (int32_t i = 0; i < count; ++i) {
    result.codes.push_back(pages.code(Side::kKeys, 0, plane.scale_groups[0], i));
  }
  return result;
}

TEST_CASE("golden/quantization.json, with every instruction set") {
  const nlohmann::json file = test::read_golden("quantization");
  for (const auto& golden : file["cases"]) {
    const std::vector<float> x = test::numbers_f32(golden["x"]);
    const std::vector<double> scales = test::numbers(golden["scales"]);
    const std::vector<double> codes = test::numbers(golden["codes"]);
    const auto group = golden["scale_group"].get<size_t>();
    const int bits = golden["bits"].get<int>();
    test::for_each_kernel_set([&](const Kernels& kernels) {
      for (size_t first = 0; first < x.size(); first += group) {
        const size_t end = std::min(first + group, x.size());
        const Quantized actual = quantize(kernels, {x.begin() + first, x.begin() + end}, bits);
        REQUIRE(actual.scale < 0x7c00u);
        CHECK(static_cast<double>(f32_from_f16(static_cast<uint16_t>(actual.scale))) == scales[first / group]);
        CHECK(std::equal(actual.codes.begin(), actual.codes.end(), codes.begin() + first));
      }
    });
  }
}

// The quotient is formed in f32; quantize.h says why that is exact. Numbers are put on and next to every tie.
TEST_CASE("codes are those of an exact division, on ties and next to them") {
  test::Random random(3);
  for (int bits = 2; bits <= 8; ++bits) {
    const int32_t limit = (1 << (bits - 1)) - 1;
    for (int round = 0; round < 300; ++round) {
      const float largest = static_cast<float>(std::exp(random.uniform(-14.0, 10.0)));
      const double scale = static_cast<double>(f32_from_f16(f16_from_f64(static_cast<double>(largest) / limit)));
      std::vector<float> latents = {largest};
      for (int32_t code = -limit; code <= limit && scale > 0.0; ++code) {
        const auto tie = static_cast<float>((code + 0.5) * scale);
        for (const float x : {tie, std::nextafter(tie, 1e30f), std::nextafter(tie, -1e30f)}) {
          if (std::abs(x) <= largest) latents.push_back(x);
        }
      }
      std::vector<int32_t> expected;
      for (const float x : latents) {
        const double code = scale > 0.0 ? std::nearbyint(static_cast<double>(x) / scale) : 0.0;
        expected.push_back(static_cast<int32_t>(std::clamp(code, -1.0 * limit, 1.0 * limit)));
      }
      test::for_each_kernel_set([&](const Kernels& kernels) {
        const Quantized actual = quantize(kernels, latents, bits);
        REQUIRE(actual.scale == f16_from_f64(static_cast<double>(largest) / limit));
        CHECK(actual.codes == expected);
      });
    }
  }
}

TEST_CASE("groups without a scale, and groups that have none") {
  constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e30f,
                            65520.0f * 7.0f};
  test::for_each_kernel_set([&](const Kernels& kernels) {
    for (const float bad : kBad) {
      std::vector<float> latents(21, 0.5f);
      latents[20] = bad;
      CHECK(quantize(kernels, latents, 4).scale == kBadScale);
      latents[20] = 0.5f;
      latents[3] = bad;
      CHECK(quantize(kernels, latents, 4).scale == kBadScale);
    }
    CHECK(quantize(kernels, {65519.0f * 7.0f}, 4).scale == 0x7bffu);
    const float tiny = std::numeric_limits<float>::denorm_min();
    for (const std::vector<float>& latents : {std::vector<float>{0.0f, -0.0f}, std::vector<float>{tiny, -tiny},
                                              std::vector<float>{1e-8f, -1e-9f}}) {
      const Quantized zero = quantize(kernels, latents, 4);
      CHECK(zero.scale == 0u);
      CHECK(zero.codes == std::vector<int32_t>{0, 0});
    }
  });
}

TEST_CASE("f16 of double is rounded once") {
  // Just above half way between two halves, by less than f32 can tell.
  const double halfway = 1.0 + 0x1p-11;
  CHECK(f16_from_f64(halfway) == 0x3c00);
  CHECK(f16_from_f64(halfway + 0x1p-40) == 0x3c01);
  CHECK(f16_from_f64(-halfway - 0x1p-40) == 0xbc01);
  CHECK(f16_from_f64(0.0) == 0);
  CHECK(f16_from_f64(1e300) == 0x7c00);
  CHECK_FALSE(is_finite_f16(f16_from_f64(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace foldkv::backend::cpu
