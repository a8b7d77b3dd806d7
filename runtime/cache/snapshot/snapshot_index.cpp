#include "runtime/cache/snapshot/snapshot_index.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/checked.h"
#include "runtime/base/fingerprint.h"
#include "runtime/cache/snapshot/snapshot_file.h"

namespace foldkv {
namespace {

using snapshot_file::load;

// The deepest path is root, sequence, policy, eviction, selection, ratio.
constexpr flatbuffers::uoffset_t kMaxDepth = 8;
// The bound also ends loops over tables that share a place.
constexpr flatbuffers::uoffset_t kMaxTables = 1u << 24;
// So that a header that lies about its index costs no more memory than there are bytes.
constexpr int64_t kPieceBytes = int64_t{1} << 20;

using Header = std::array<std::byte, snapshot_file::kHeaderBytes>;

Status check_header(const Header& header) {
  if (std::memcmp(header.data(), snapshot_file::kMagic.data(), snapshot_file::kMagic.size()) != 0) {
    return corrupt_error("not a snapshot: it does not begin with FoldKVsn");
  }
  const auto version = static_cast<int32_t>(load(header.data() + 8, 4));
  if (version > snapshot_file::kVersion) {
    return version_error(absl::StrCat("got snapshot version ", version, ", this library reads version ",
                                      snapshot_file::kVersion, " at most"));
  }
  if (load(header.data() + snapshot_file::kChecksummedHeaderBytes, 8) !=
      fingerprint_of_bytes(header.data(), snapshot_file::kChecksummedHeaderBytes)) {
    return corrupt_error("the snapshot is not whole or has been changed: the checksum of its header does not fit");
  }
  const uint64_t bytes = load(header.data() + 16, 8);
  if (version < 1 || load(header.data() + 12, 4) != 0 || bytes < 8 || bytes > snapshot_file::kMostIndexBytes) {
    return corrupt_error("the snapshot's header is not valid");
  }
  return absl::OkStatus();
}

Status verify(const std::vector<uint64_t>& memory, size_t bytes) {
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  options.max_tables = kMaxTables;
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(memory.data()), bytes, options);
  if (!file::VerifySnapshotBuffer(verifier)) return corrupt_error("the snapshot's tables or offsets are not valid");
  return absl::OkStatus();
}

}  // namespace

StatusOr<SnapshotIndex> SnapshotIndex::read(ReadBytes read) {
  Header header{};
  FOLDKV_RETURN_IF_ERROR(read(header));
  FOLDKV_RETURN_IF_ERROR(check_header(header));
  const auto bytes = static_cast<int64_t>(load(header.data() + 16, 8));
  Fingerprint checksum;
  SnapshotIndex index;
  for (int64_t done = 0; done < bytes;) {
    const int64_t piece = std::min(kPieceBytes, bytes - done);
    index.memory_.resize(static_cast<size_t>(divide_up(done + piece, int64_t{sizeof(uint64_t)})));
    const std::span place(reinterpret_cast<std::byte*>(index.memory_.data()) + done, static_cast<size_t>(piece));
    FOLDKV_RETURN_IF_ERROR(read(place));
    checksum.add_bytes(place.data(), place.size());
    done += piece;
  }
  if (checksum.value() != load(header.data() + snapshot_file::kIndexChecksumOffset, 8)) {
    return corrupt_error("the snapshot is not whole or has been changed: the checksum of its index does not fit");
  }
  FOLDKV_RETURN_IF_ERROR(verify(index.memory_, static_cast<size_t>(bytes)));
  return index;
}

}  // namespace foldkv
