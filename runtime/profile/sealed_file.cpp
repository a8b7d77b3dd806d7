#include "runtime/profile/sealed_file.h"

#include <cstring>

#include "runtime/base/checked.h"
#include "runtime/base/fingerprint.h"

namespace foldkv::sealed_file {
namespace {

constexpr size_t kTrailerBytes = 8;
constexpr size_t kIdentifierOffset = 4;
constexpr size_t kIdentifierBytes = 4;

uint64_t load_little_endian(const uint8_t* bytes) {
  uint64_t value = 0;
  for (size_t index = 0; index < sizeof value; ++index) value |= uint64_t{bytes[index]} << (8 * index);
  return value;
}

}  // namespace

StatusOr<size_t> check_envelope(const uint8_t* bytes, size_t size, const Kind& kind) {
  constexpr size_t kLeast = kIdentifierOffset + kIdentifierBytes + kTrailerBytes;
  if (size < kLeast) {
    return corrupt_error(absl::StrCat("not a ", kind.name, ": got ", size, " bytes, expected ", kLeast, " or more"));
  }
  if (std::memcmp(bytes + kIdentifierOffset, kind.identifier, kIdentifierBytes) != 0) {
    return corrupt_error(absl::StrCat("not a ", kind.name, ": the identifier ", kind.identifier, " is not at byte ",
                                      kIdentifierOffset));
  }
  const size_t buffer_size = size - kTrailerBytes;
  if (buffer_size % kAlignment != 0 || buffer_size >= kMaxBytes) {
    return corrupt_error(absl::StrCat("the ", kind.name, " is not whole: no ", kind.name, " has ", size, " bytes"));
  }
  if (load_little_endian(bytes + buffer_size) != fingerprint_of_bytes(bytes, buffer_size)) {
    return corrupt_error(absl::StrCat("the ", kind.name, " is not whole or has been changed: its checksum does not fit"));
  }
  return buffer_size;
}

Status check_version(const char* name, int32_t got, int32_t newest) {
  if (got < 1) return corrupt_error(absl::StrCat("got ", name, " version ", got));
  if (got <= newest) return absl::OkStatus();
  return version_error(
      absl::StrCat("got ", name, " version ", got, ", this library reads version ", newest, " at most"));
}

const uint8_t* aligned(const uint8_t* bytes, size_t size, std::vector<uint64_t>& copy) {
  if (reinterpret_cast<uintptr_t>(bytes) % kAlignment == 0) return bytes;
  copy.resize(size / sizeof(uint64_t));
  std::memcpy(copy.data(), bytes, size);
  return reinterpret_cast<const uint8_t*>(copy.data());
}

std::vector<uint8_t> seal(const uint8_t* buffer, size_t size) {
  const auto padded = static_cast<size_t>(round_up(static_cast<int64_t>(size), int64_t{kAlignment}));
  std::vector<uint8_t> bytes;
  bytes.reserve(padded + kTrailerBytes);
  bytes.assign(buffer, buffer + size);
  bytes.resize(padded);
  const uint64_t checksum = fingerprint_of_bytes(bytes.data(), bytes.size());
  for (size_t index = 0; index < kTrailerBytes; ++index) {
    bytes.push_back(static_cast<uint8_t>(checksum >> (8 * index)));
  }
  return bytes;
}

}  // namespace foldkv::sealed_file
