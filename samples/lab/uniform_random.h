#pragma once

#include <cstdint>
#include <random>

namespace foldkv_lab {

// Draws from a seed, the same on every platform: the standard fixes its generators, not its distributions.
class UniformRandom {
 public:
  explicit UniformRandom(uint64_t seed) : generator_(seed) {}

  // In [0, count); count is 1 or more. Draws beyond the last whole multiple of count would favour small numbers.
  [[nodiscard]] uint64_t below(uint64_t count) {
    const uint64_t excess = (UINT64_MAX % count + 1) % count;
    uint64_t draw = generator_();
    while (draw > UINT64_MAX - excess) draw = generator_();
    return draw % count;
  }
  // In [0, 1).
  [[nodiscard]] double fraction() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 generator_;
};

}  // namespace foldkv_lab
