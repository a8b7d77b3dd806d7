#include "tests/fuzz/snapshot_seal.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/fingerprint.h"
#include "runtime/cache/snapshot/snapshot_file.h"
#include "runtime/cache/snapshot/snapshot_generated.h"

namespace foldkv::fuzz {
namespace {

namespace format = snapshot_file;

std::byte* bytes_at(uint8_t* data, size_t offset) { return reinterpret_cast<std::byte*>(data) + offset; }

// Where the index is sound: a vector of it that may be written.
uint64_t* checksums_of(uint8_t* index, size_t bytes, const flatbuffers::Vector<uint32_t>** sizes) {
  flatbuffers::Verifier verifier(index, bytes);
  if (!file::VerifySnapshotBuffer(verifier)) return nullptr;
  const file::Snapshot* root = file::GetSnapshot(index);
  if (root->page_bytes()->size() != root->page_checksums()->size()) return nullptr;
  *sizes = root->page_bytes();
  const uint8_t* const first = root->page_checksums()->Data();
  return reinterpret_cast<uint64_t*>(index + (first - index));
}

void seal_pages(uint8_t* data, size_t size, size_t place, uint64_t* checksums,
                const flatbuffers::Vector<uint32_t>& sizes) {
  for (flatbuffers::uoffset_t page = 0; page < sizes.size(); ++page) {
    if (place + 4 > size) return;
    const uint64_t stored = format::load(bytes_at(data, place), 4);
    place += 4;
    if (place + stored > size) return;
    if (stored == sizes.Get(page)) {
      const uint64_t checksum = fingerprint_of_bytes(data + place, stored);
      std::memcpy(checksums + page, &checksum, sizeof checksum);
    }
    place += stored;
  }
}

}  // namespace

void seal_snapshot(uint8_t* data, size_t size) {
  if (size < format::kHeaderBytes + 8) return;
  const uint64_t index_bytes = std::min<uint64_t>(format::load(bytes_at(data, 16), 8), size - format::kHeaderBytes - 8);
  const auto pages = format::kHeaderBytes + static_cast<size_t>(index_bytes);
  const flatbuffers::Vector<uint32_t>* sizes = nullptr;
  // FlatBuffers wants its buffer at an aligned place, which the header leaves it at when the input is.
  uint64_t* const checksums = checksums_of(data + format::kHeaderBytes, index_bytes, &sizes);
  if (checksums != nullptr) seal_pages(data, size - 8, pages, checksums, *sizes);
  format::store(fingerprint_of_bytes(data + format::kHeaderBytes, index_bytes), 8,
                bytes_at(data, format::kIndexChecksumOffset));
  format::store(fingerprint_of_bytes(data, format::kChecksummedHeaderBytes), 8,
                bytes_at(data, format::kChecksummedHeaderBytes));
  Fingerprint of_pages;
  of_pages.add_bytes(data + pages, size - 8 - pages);
  format::store(of_pages.value(), 8, bytes_at(data, size - 8));
}

}  // namespace foldkv::fuzz
