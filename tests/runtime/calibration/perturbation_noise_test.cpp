#include "runtime/calibration/perturbation_noise.h"

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/base/philox.h"

namespace foldkv {
namespace {

// Box and Muller by hand: all bits zero is u = 2^-33, half the bits u = 1/2 + 2^-33.
TEST_CASE("normal numbers of known bits") {
  const double small = 0x1p-33;
  const std::array<double, 4> numbers = normal_numbers({0, 0, 0x80000000u, 0x40000000u});
  CHECK(numbers[0] == doctest::Approx(std::sqrt(66.0 * std::numbers::ln2)));
  CHECK(numbers[1] == doctest::Approx(std::sqrt(66.0 * std::numbers::ln2) * 2.0 * std::numbers::pi * small));
  CHECK(std::abs(numbers[2]) < 1e-8);  // a quarter turn
  CHECK(numbers[3] == doctest::Approx(std::sqrt(2.0 * std::numbers::ln2)));
}

TEST_CASE("moments of a normal distribution") {
  constexpr uint32_t kBlocks = 250'000;  // a million numbers
  double sums[5] = {};
  double neighbours = 0.0;
  for (uint32_t block = 0; block < kBlocks; ++block) {
    const std::array<double, 4> numbers = normal_numbers(philox({block, 7, 3, 1}, 42));
    for (const double number : numbers) {
      double power = 1.0;
      for (double& sum : sums) sum += std::exchange(power, power * number);
    }
    neighbours += numbers[0] * numbers[1] + numbers[1] * numbers[2] + numbers[2] * numbers[3];
  }
  const double count = sums[0];
  // Five standard errors each: 1, sqrt(2), sqrt(15) and sqrt(96) times 0.001.
  CHECK(std::abs(sums[1] / count) < 0.005);
  CHECK(std::abs(sums[2] / count - 1.0) < 0.0071);
  CHECK(std::abs(sums[3] / count) < 0.0194);
  CHECK(std::abs(sums[4] / count - 3.0) < 0.049);
  CHECK(std::abs(neighbours / (3.0 * kBlocks)) < 0.006);
}

std::vector<double> noise_of(const NoiseKey& key, size_t channels, double scale) {
  std::vector<float> head(channels);
  for (size_t i = 0; i < channels; ++i) head[i] = static_cast<float>(i % 3);
  const std::vector<float> before = head;
  double squares = 0.0;
  for (const float number : before) squares += double{number} * double{number};
  add_perturbation(head, scale, key);
  std::vector<double> noise;
  for (size_t i = 0; i < channels; ++i) {
    noise.push_back((double{head[i]} - double{before[i]}) / (scale * std::sqrt(squares)));
  }
  return noise;
}

TEST_CASE("noise is a function of its key, in proportion to the vector's length") {
  const NoiseKey key{.seed = 5, .example = 2, .layer = 9, .side = 1, .head = 3, .position = 77};
  const std::vector<double> noise = noise_of(key, 10, 0.5);
  for (size_t channel = 0; channel < noise.size(); ++channel) {
    const auto block = static_cast<uint32_t>(3 * 128 + channel / 4);
    const double expected = normal_numbers(philox({block, 77, 9u | 0x80000000u, 2}, 5))[channel % 4];
    CHECK(noise[channel] == doctest::Approx(expected).epsilon(1e-5));
  }
  for (const double scale : {0.1, 3.0}) {
    const std::vector<double> other = noise_of(key, 10, scale);
    for (size_t i = 0; i < noise.size(); ++i) CHECK(other[i] == doctest::Approx(noise[i]).epsilon(1e-4));
  }
}

TEST_CASE("every part of the key changes all of the noise") {
  const NoiseKey key{.seed = 5, .example = 2, .layer = 9, .side = 1, .head = 3, .position = 77};
  const std::vector<double> noise = noise_of(key, 8, 1.0);
  const auto differs = [&](auto change) {
    NoiseKey other = key;
    change(other);
    const std::vector<double> changed = noise_of(other, 8, 1.0);
    for (size_t i = 0; i < noise.size(); ++i) CHECK(changed[i] != noise[i]);
  };
  differs([](NoiseKey& other) { other.seed += uint64_t{1} << 40; });
  differs([](NoiseKey& other) { ++other.example; });
  differs([](NoiseKey& other) { ++other.layer; });
  differs([](NoiseKey& other) { other.side = 0; });
  differs([](NoiseKey& other) { ++other.head; });
  differs([](NoiseKey& other) { ++other.position; });
}

TEST_CASE("no noise without scale, none for a vector of zeros") {
  std::vector<float> head = {1, -2, 3};
  add_perturbation(head, 0.0, {});
  CHECK(head == std::vector<float>{1, -2, 3});
  head = {0, 0, 0};
  add_perturbation(head, 10.0, {});
  CHECK(head == std::vector<float>{0, 0, 0});
}

}  // namespace
}  // namespace foldkv
