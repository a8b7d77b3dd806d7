#include "tests/fuzz/seal.h"

#include "runtime/base/fingerprint.h"

namespace foldkv::fuzz {

size_t seal(uint8_t* data, size_t size) {
  constexpr size_t kTrailerBytes = 8;
  if (size < 2 * kTrailerBytes) return size;
  size -= size % kTrailerBytes;
  const size_t content = size - kTrailerBytes;
  const uint64_t checksum = fingerprint_of_bytes(data, content);
  for (size_t i = 0; i < kTrailerBytes; ++i) data[content + i] = static_cast<uint8_t>(checksum >> (8 * i));
  return size;
}

}  // namespace foldkv::fuzz
