#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace foldkv {

// What a vector of one head at one position is perturbed with. Numbers depend on nothing else.
struct NoiseKey {
  uint64_t seed = 0;
  uint32_t example = 0;
  int64_t layer = 0;     // below 2^31
  int32_t side = 0;      // 0: keys, 1: values
  int64_t head = 0;      // head * 128 + channel / 4 fits 32 bits: heads are at most 2^20
  int32_t position = 0;
};

// Four standard normal numbers of 128 random bits: Box and Muller's transform of two pairs of 32-bit numbers, each
// taken as the middle of its interval. No number is farther out than 6.8.
[[nodiscard]] std::array<double, 4> normal_numbers(const std::array<uint32_t, 4>& bits);

// RippleKV's perturbation (methods.md section 2): x += scale * |x| * e, e standard normal with the channel as a further
// key: channel c is number c % 4 of Philox4x32-10 with the key `seed` and the counter
// {head * 128 + c / 4, position, layer + side * 2^31, example}. |x| is the Euclidean norm over the head's channels. The
// same everywhere up to the last bits of the platform's log, sine and cosine.
void add_perturbation(std::span<float> head, double scale, const NoiseKey& key);

}  // namespace foldkv
