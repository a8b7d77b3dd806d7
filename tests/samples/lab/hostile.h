#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace foldkv_lab::test {

// Calls try_bytes(bytes) for variations of a file. Each variation is an allocation of exactly its size, so that a
// sanitizer sees every read beyond the end.
template <typename Try>
void for_each_truncation(std::span<const std::byte> file, size_t step, const Try& try_bytes) {
  for (size_t size = 0; size < file.size(); size += step) {
    const std::vector<std::byte> bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    try_bytes(std::span<const std::byte>(bytes));
  }
}

// Every byte below `end` changed by each pattern, one at a time.
template <typename Try>
void for_each_flip(std::span<const std::byte> file, size_t end, std::span<const std::byte> patterns,
                   const Try& try_bytes) {
  std::vector<std::byte> bytes(file.begin(), file.end());
  for (size_t i = 0; i < end; ++i) {
    for (const std::byte pattern : patterns) {
      bytes[i] ^= pattern;
      try_bytes(std::span<const std::byte>(bytes));
      bytes[i] ^= pattern;
    }
  }
}

inline constexpr std::byte kFlipPatterns[] = {std::byte{0x01}, std::byte{0x04}, std::byte{0x10},
                                              std::byte{0x80}, std::byte{0x7f}, std::byte{0xff}};

}  // namespace foldkv_lab::test
