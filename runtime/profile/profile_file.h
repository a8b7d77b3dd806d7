#pragma once

#include <cstddef>
#include <cstdint>

// What the reader and the writer of profile files agree on.
//
// A file is a FlatBuffer (profile.fbs, identifier "FKVP" at byte 4), padded with zeros to a multiple of 8 bytes, then
// a trailer of 8 bytes: XXH3 (64 bits) of all bytes before it, little-endian. The checksum covers padding too, so any
// change to any byte is seen before the contents are looked at. Offsets inside a FlatBuffer count from its start, so
// tools that know only FlatBuffers read the file as it is.
//
// The checksum finds damage, not malice: the contents are verified as if there were none.
namespace foldkv::profile_file {

inline constexpr int32_t kVersion = 3;  // 2: several plans, bands may end before the basis; 3: kinds, sources
inline constexpr size_t kAlignment = 8;
inline constexpr size_t kTrailerBytes = 8;
inline constexpr size_t kIdentifierOffset = 4;
inline constexpr size_t kIdentifierBytes = 4;
// FlatBuffers address at most 2^31 - 1 bytes.
inline constexpr size_t kMaxBytes = (size_t{1} << 31) - 1;

}  // namespace foldkv::profile_file
