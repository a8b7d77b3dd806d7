#pragma once

#include <cstddef>
#include <cstdint>

namespace foldkv::fuzz {

// Gives a snapshot (runtime/cache/snapshot/snapshot_file.h) checksums that fit: of the pages that it has, where its
// index is sound and the page is not compressed, of the index, and of all pages.
void seal_snapshot(uint8_t* data, size_t size);

}  // namespace foldkv::fuzz
