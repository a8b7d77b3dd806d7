#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// Pieces of memory in a file without a name: the system frees it when the object goes, or the process, however it ends.
class SpillFile {
 public:
  // File error when the directory takes no file.
  [[nodiscard]] static StatusOr<std::unique_ptr<SpillFile>> create(const std::string& directory);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Behind those that are there.
  [[nodiscard]] Status write(const std::byte* piece, int64_t bytes);
  // Piece number `index`, of as many bytes as were written. Corrupt error when they are not the same bytes.
  [[nodiscard]] Status read(int64_t index, std::byte* piece, int64_t bytes) const;
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  struct Piece {
    int64_t offset = 0;
    uint64_t checksum = 0;
  };

  explicit SpillFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  int64_t bytes_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace foldkv
