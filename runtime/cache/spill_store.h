#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/base/status.h"

namespace foldkv {

// A file without a name for all that a runtime spills: the system frees it when the object goes, or the process, however
// it ends. One file, so that any number of sequences needs one descriptor. All functions may be called from several
// threads.
class SpillStore {
 public:
  // File error when the directory takes no file.
  [[nodiscard]] static StatusOr<std::shared_ptr<SpillStore>> create(const std::string& directory);
  ~SpillStore();
  SpillStore(const SpillStore&) = delete;
  SpillStore& operator=(const SpillStore&) = delete;

  // Where so many bytes may be written.
  [[nodiscard]] int64_t reserve(int64_t bytes);
  void release(int64_t offset, int64_t bytes);

  [[nodiscard]] Status write(int64_t offset, const std::byte* piece, int64_t bytes);
  // Corrupt error when the file ends before.
  [[nodiscard]] Status read(int64_t offset, std::byte* piece, int64_t bytes) const;

  // Of the file, free stretches included.
  [[nodiscard]] int64_t end() const;

 private:
  explicit SpillStore(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  mutable std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // offset -> bytes; none of them touches the end
  int64_t end_ = 0;
};

}  // namespace foldkv
