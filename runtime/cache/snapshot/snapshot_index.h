#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cache/snapshot/snapshot_generated.h"
#include "runtime/cache/snapshot/snapshot_stream.h"

namespace foldkv {

// The verified part of a snapshot before its pages.
class SnapshotIndex {
 public:
  // Corrupt error when the bytes are no whole, unchanged index, version error when this library does not know it.
  [[nodiscard]] static StatusOr<SnapshotIndex> read(ReadBytes read);

  [[nodiscard]] const file::Snapshot& root() const {
    return *file::GetSnapshot(reinterpret_cast<const uint8_t*>(memory_.data()));
  }

 private:
  std::vector<uint64_t> memory_;  // aligned for every number in it
};

}  // namespace foldkv
