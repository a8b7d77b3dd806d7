#pragma once

#include <array>
#include <cstdint>

namespace foldkv {

// Philox4x32-10, a counter-based generator: 128 random bits that are a function of a key and a counter alone, so that
// numbers can be had in any order and on any device (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as
// 1, 2, 3; 2011).
[[nodiscard]] constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  constexpr uint64_t kFirstMultiplier = 0xD2511F53;
  constexpr uint64_t kSecondMultiplier = 0xCD9E8D57;
  constexpr uint32_t kFirstWeyl = 0x9E3779B9;
  constexpr uint32_t kSecondWeyl = 0xBB67AE85;
  auto first_key = static_cast<uint32_t>(key);
  auto second_key = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = kFirstMultiplier * counter[0];
    const uint64_t second = kSecondMultiplier * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ first_key, static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ second_key, static_cast<uint32_t>(first)};
    first_key += kFirstWeyl;
    second_key += kSecondWeyl;
  }
  return counter;
}

}  // namespace foldkv
