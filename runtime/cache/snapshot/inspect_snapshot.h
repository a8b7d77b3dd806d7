#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cache/snapshot/snapshot_stream.h"

namespace foldkv {

// What the part of a snapshot before its pages says.
struct SnapshotSummary {
  int64_t sequence_count = 0;
  uint64_t model_fingerprint = 0;
  uint64_t profile_fingerprint = 0;
  uint64_t page_bytes = 0;  // in memory
  std::string model_name, made_by;
  std::vector<std::byte> note;
  // Of the first sequence.
  std::string plan;
  int64_t tokens = 0;
  int64_t next_position = 0;
};

// Reads and verifies that part. Errors as restore_sequences.
[[nodiscard]] StatusOr<SnapshotSummary> inspect_snapshot(ReadBytes read);

}  // namespace foldkv
