#include "runtime/calibration/perturbation_noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "runtime/base/philox.h"

namespace foldkv {
namespace {

constexpr size_t kNumbersAtOnce = 4;
constexpr uint32_t kBlocksOfHead = 128;  // of 4 channels each; heads have 512 channels at most

double uniform(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

}  // namespace

std::array<double, 4> normal_numbers(const std::array<uint32_t, 4>& bits) {
  std::array<double, 4> numbers{};
  for (size_t pair = 0; pair < 4; pair += 2) {
    const double radius = std::sqrt(-2.0 * std::log(uniform(bits[pair])));
    const double angle = 2.0 * std::numbers::pi * uniform(bits[pair + 1]);
    numbers[pair] = radius * std::cos(angle);
    numbers[pair + 1] = radius * std::sin(angle);
  }
  return numbers;
}

void add_perturbation(std::span<float> head, double scale, const NoiseKey& key) {
  double squares = 0.0;
  for (const float number : head) squares += double{number} * double{number};
  const double size = scale * std::sqrt(squares);
  const auto layer_and_side = static_cast<uint32_t>(key.layer) | static_cast<uint32_t>(key.side) << 31;
  const uint32_t first_block = static_cast<uint32_t>(key.head) * kBlocksOfHead;
  for (size_t first = 0; first < head.size(); first += kNumbersAtOnce) {
    const auto block = static_cast<uint32_t>(first / kNumbersAtOnce);
    const std::array<double, 4> noise = normal_numbers(
        philox({first_block + block, static_cast<uint32_t>(key.position), layer_and_side, key.example}, key.seed));
    const size_t count = std::min(kNumbersAtOnce, head.size() - first);
    for (size_t i = 0; i < count; ++i) {
      head[first + i] = static_cast<float>(double{head[first + i]} + size * noise[i]);
    }
  }
}

}  // namespace foldkv
