#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// What surrounds the index and the pages of a snapshot. All numbers are little-endian.
//
//   header, 40 bytes   "FoldKVsn" | version u32 | 0 u32 | bytes of the index u64 | XXH3 of the index u64 |
//                      XXH3 of these 32 bytes u64, so that no changed length is followed
//   index              a FlatBuffer of snapshot.fbs
//   pages              each: stored bytes u32, then so many bytes: the page, or, when fewer, a zstd frame of it
//   trailer, 8 bytes   XXH3 of everything between the index and the trailer
//
// A page begins with zeros where no token is, so that nothing of another sequence gets into a file. Checksums find
// damage, not malice: the index is verified as if there were none, and every number in a page means something.
namespace foldkv::snapshot_file {

inline constexpr int32_t kVersion = 1;
inline constexpr std::array<char, 8> kMagic = {'F', 'o', 'l', 'd', 'K', 'V', 's', 'n'};
inline constexpr size_t kHeaderBytes = 40;
inline constexpr size_t kChecksummedHeaderBytes = 32;
inline constexpr size_t kIndexChecksumOffset = 24;
inline constexpr uint64_t kMostIndexBytes = uint64_t{1} << 30;
inline constexpr size_t kMostNoteBytes = size_t{16} << 20;

inline void store(uint64_t value, size_t bytes, std::byte* target) {
  for (size_t index = 0; index < bytes; ++index) target[index] = static_cast<std::byte>(value >> (8 * index));
}
[[nodiscard]] inline uint64_t load(const std::byte* source, size_t bytes) {
  uint64_t value = 0;
  for (size_t index = 0; index < bytes; ++index) value |= std::to_integer<uint64_t>(source[index]) << (8 * index);
  return value;
}

}  // namespace foldkv::snapshot_file
