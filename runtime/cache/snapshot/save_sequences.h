#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/cancellation.h"
#include "runtime/cache/sequence.h"
#include "runtime/cache/snapshot/snapshot_stream.h"

namespace foldkv {

struct SaveOptions {
  std::string made_by;                         // library and version
  int32_t compression = 0;                     // level of zstd, 0: none
  std::span<const std::byte> note;             // bytes of the host
  Cancellation cancellation = Cancellation();  // asked at first and before each page
};

// Writes a snapshot (snapshot_file.h) of sequences of one model and profile. Pages that they share are written once.
// Mismatch error when they do not belong together, state error when one of them is part of an open step. Takes memory
// for the index and one page. Each page is read twice, since the index with the checksums comes first.
[[nodiscard]] Status save_sequences(std::span<const std::shared_ptr<Sequence>> sequences, const SaveOptions& options,
                                    WriteBytes write);

}  // namespace foldkv
