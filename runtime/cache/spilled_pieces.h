#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/cache/spill_store.h"

namespace foldkv {

// What one sequence has in a spill store: pieces of memory in the order in which they were written.
class SpilledPieces {
 public:
  // Room for so many bytes in all.
  SpilledPieces(std::shared_ptr<SpillStore> store, int64_t bytes);
  ~SpilledPieces();
  SpilledPieces(const SpilledPieces&) = delete;
  SpilledPieces& operator=(const SpilledPieces&) = delete;

  [[nodiscard]] Status write(const std::byte* piece, int64_t bytes);
  // Piece number `index`, of as many bytes as were written. Corrupt error when they are not the same bytes.
  [[nodiscard]] Status read(int64_t index, std::byte* piece, int64_t bytes) const;
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  struct Piece {
    int64_t offset = 0;
    uint64_t checksum = 0;
  };

  std::shared_ptr<SpillStore> store_;
  int64_t bytes_;
  int64_t offset_;
  int64_t written_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace foldkv
