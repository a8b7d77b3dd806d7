#include "backends/reference/trellis.h"

#include <cmath>
#include <limits>
#include <vector>

#include "backends/interface/trellis.h"
#include "backends/interface/trellis_scale.h"
#include "doctest/doctest.h"
#include "runtime/base/checked.h"
#include "tests/support/random.h"

namespace foldkv::backend::reference {
namespace {

ScaleGroup group_of(const TrellisRate& rate, int32_t count) {
  ScaleGroup group;
  group.count = count;
  group.bits = rate.bits;
  group.code = Code::kTrellis;
  group.step = rate.step;
  return group;
}

int64_t code_bits(const ScaleGroup& group) { return divide_up(group.count, group.step) * group.bits; }

struct Coded {
  std::vector<std::byte> codes;
  std::byte scale = {};
  std::vector<double> latent;
};

Status encode(const ScaleGroup& group, const std::vector<float>& numbers, Coded& coded) {
  Scratch measure(nullptr);
  (void)TrellisArrays::place(measure, group.count);
  std::vector<std::byte> memory(static_cast<size_t>(measure.used()));
  Scratch scratch(memory.data());
  return encode_trellis({&group, 1}, numbers.data(), TrellisArrays::place(scratch, group.count), coded.codes.data(),
                        &coded.scale);
}

Coded code(const ScaleGroup& group, const std::vector<float>& numbers) {
  Coded coded;
  coded.codes.resize(static_cast<size_t>(divide_up(code_bits(group), 8)));
  coded.latent.resize(numbers.size());
  REQUIRE(encode(group, numbers, coded).ok());
  decode_trellis(group, coded.codes.data(), &coded.scale, coded.latent.data());
  return coded;
}

TEST_CASE("tables are antisymmetric, and no other rates are found") {
  for (const TrellisRate& rate : kTrellisRates) {
    CHECK(find_trellis_rate(rate.bits, rate.step) == &rate);
    CHECK(rate.gain == doctest::Approx(1.0 / (1.0 - rate.distortion)).epsilon(1e-4));
    for (int32_t v = 0; v < rate.step; ++v) {
      for (int window = 0; window < kTrellisWindows; ++window) {
        CHECK(rate.table[v][kTrellisWindows - 1 - window] == -rate.table[v][window]);
      }
    }
  }
  CHECK(find_trellis_rate(2, 2) == nullptr);
  CHECK(find_trellis_rate(5, 1) == nullptr);
  CHECK(find_trellis_rate(0, 1) == nullptr);
}

// Rate-distortion theory bounds it by 4^-rate from below; the table's figure is measured with long strings.
TEST_CASE("Gaussian numbers come back with the distortion that the table says, and without bias") {
  test::Random random(11);
  for (const TrellisRate& rate : kTrellisRates) {
    CAPTURE(rate.bits);
    CAPTURE(rate.step);
    const ScaleGroup group = group_of(rate, 1024);
    double error = 0.0;
    double product = 0.0;
    double energy = 0.0;
    for (int token = 0; token < 24; ++token) {
      const std::vector<float> numbers = random.normals<float>(1024);
      const Coded coded = code(group, numbers);
      for (size_t i = 0; i < numbers.size(); ++i) {
        const auto number = static_cast<double>(numbers[i]);
        const double shrunk = coded.latent[i] / static_cast<double>(rate.gain);
        error += (number - shrunk) * (number - shrunk);
        product += number * coded.latent[i];
        energy += number * number;
      }
    }
    CHECK(error / energy == doctest::Approx(rate.distortion).epsilon(0.06));
    CHECK(error / energy > std::pow(4.0, -static_cast<double>(rate.bits) / rate.step));
    CHECK(product / energy == doctest::Approx(1.0).epsilon(0.02));
  }
}

// Square distances in units of the scale, summed as the encoder sums them.
int64_t cost_of(const ScaleGroup& group, const std::vector<float>& numbers, const Coded& coded) {
  const TrellisRate& rate = *find_trellis_rate(group.bits, group.step);
  const float scale = trellis_scale(std::to_integer<uint8_t>(coded.scale), group.spread);
  int64_t cost = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double units = std::nearbyint(static_cast<double>(numbers[i]) * (kTrellisUnit / static_cast<double>(scale)));
    const double value = coded.latent[i] / (static_cast<double>(rate.gain) * static_cast<double>(scale)) * kTrellisUnit;
    cost += std::llround((units - value) * (units - value));
  }
  return cost;
}

TEST_CASE("no other string of the same length is nearer") {
  test::Random random(12);
  for (const TrellisRate& rate : kTrellisRates) {
    const auto count = static_cast<int32_t>(12 / rate.bits * rate.step - (rate.step - 1));  // up to 12 bits
    const ScaleGroup group = group_of(rate, count);
    for (int round = 0; round < 5; ++round) {
      const std::vector<float> numbers = random.normals<float>(count);
      Coded coded = code(group, numbers);
      const int64_t found = cost_of(group, numbers, coded);
      int64_t best = std::numeric_limits<int64_t>::max();
      for (uint32_t string = 0; string < 1u << code_bits(group); ++string) {
        for (size_t byte = 0; byte < coded.codes.size(); ++byte) {
          coded.codes[byte] = static_cast<std::byte>(string >> (8 * byte) & 0xffu);
        }
        decode_trellis(group, coded.codes.data(), &coded.scale, coded.latent.data());
        best = std::min(best, cost_of(group, numbers, coded));
      }
      CHECK(found == best);
    }
  }
}

TEST_CASE("scales: every byte is nearest to itself, and the grid has ends") {
  for (const float spread : {1.0f, 0.037f, 812.0f}) {
    for (int byte = 1; byte <= 255; ++byte) {
      const auto scale = static_cast<double>(trellis_scale(static_cast<uint8_t>(byte), spread));
      CHECK(scale == doctest::Approx(static_cast<double>(spread) * std::exp2((byte - 128) / 8.0)).epsilon(1e-6));
      CHECK(trellis_scale_byte(scale * scale, spread) == byte);
      CHECK(trellis_scale_byte(scale * scale * 1.08, spread) == byte);  // half a step of the square is 2^(1/8)
      CHECK(trellis_scale_byte(scale * scale / 1.08, spread) == byte);
    }
    CHECK(trellis_scale(0, spread) == 0.0f);
  }
  CHECK(trellis_scale_byte(0.0, 1.0f) == 0);
  CHECK(trellis_scale_byte(1e-12, 1.0f) == 0);
  CHECK(trellis_scale_byte(1e12, 1.0f) == kTrellisScaleTooLarge);
  CHECK(trellis_scale_byte(std::numeric_limits<double>::infinity(), 1.0f) == kTrellisScaleTooLarge);
  CHECK(trellis_scale_byte(std::numeric_limits<double>::quiet_NaN(), 1.0f) == kTrellisScaleTooLarge);
}

TEST_CASE("a group of zeros decodes to zeros; numbers that are not finite are refused") {
  const ScaleGroup group = group_of(kTrellisRates[3], 20);
  Coded coded = code(group, std::vector<float>(20, 0.0f));
  CHECK(coded.scale == std::byte{0});
  for (double number : coded.latent) CHECK(number == 0.0);
  std::vector<float> numbers(20, 1.0f);
  numbers[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(encode(group, numbers, coded).code() == absl::StatusCode::kUnknown);
  numbers[7] = std::numeric_limits<float>::infinity();
  CHECK(encode(group, numbers, coded).code() == absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace foldkv::backend::reference
