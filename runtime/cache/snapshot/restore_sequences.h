#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/cancellation.h"
#include "runtime/cache/sequence.h"
#include "runtime/cache/snapshot/snapshot_stream.h"

namespace foldkv {

struct RestoreOptions {
  std::string plan;                            // that the sequences must have; empty: any
  int64_t capacity = 1;                        // the most sequences
  Cancellation cancellation = Cancellation();  // asked at first and before each page
};

// The sequences of a snapshot (snapshot_file.h), which is verified to its last byte before any of them is handed out.
// profile may be null. Mismatch errors name "model", "profile" or "options.plan"; argument error "capacity".
[[nodiscard]] StatusOr<std::vector<std::shared_ptr<Sequence>>> restore_sequences(
    const std::shared_ptr<Runtime>& runtime, const std::shared_ptr<Model>& model,
    const std::shared_ptr<const Profile>& profile, const RestoreOptions& options, ReadBytes read);

}  // namespace foldkv
