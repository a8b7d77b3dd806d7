#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/status.h"

// What all files of the library have in common.
//
// A file is a FlatBuffer with its identifier at byte 4, padded with zeros to a multiple of 8 bytes, then a trailer of 8
// bytes: XXH3 (64 bits) of all bytes before it, little-endian. The checksum covers padding too, so any change to any
// byte is seen before the contents are looked at. Offsets inside a FlatBuffer count from its start, so tools that know
// only FlatBuffers read the file as it is.
//
// The checksum finds damage, not malice: the contents are verified as if there were none.
namespace foldkv::sealed_file {

inline constexpr size_t kAlignment = 8;
// FlatBuffers address at most 2^31 - 1 bytes.
inline constexpr size_t kMaxBytes = (size_t{1} << 31) - 1;

struct Kind {
  const char* name;        // "profile"
  const char* identifier;  // 4 letters
};

// Checks what surrounds the FlatBuffer and returns its size. Corrupt error when the bytes are no whole, unchanged file of
// this kind.
[[nodiscard]] StatusOr<size_t> check_envelope(const uint8_t* bytes, size_t size, const Kind& kind);

// Corrupt error below version 1, version error beyond the newest that this library reads.
[[nodiscard]] Status check_version(const char* name, int32_t got, int32_t newest);

// Where the FlatBuffer lies at an address it can be read at: in place, or in `copy`, which is filled then.
[[nodiscard]] const uint8_t* aligned(const uint8_t* bytes, size_t size, std::vector<uint64_t>& copy);

// The file around a finished FlatBuffer.
[[nodiscard]] std::vector<uint8_t> seal(const uint8_t* buffer, size_t size);

}  // namespace foldkv::sealed_file
