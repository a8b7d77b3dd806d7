#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace foldkv_lab {

// A file mapped for reading. The bytes stay valid as long as this object lives.
class MappedFile {
 public:
  [[nodiscard]] static absl::StatusOr<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

// A whole text file.
[[nodiscard]] absl::StatusOr<std::string> read_text_file(const std::string& path);

}  // namespace foldkv_lab
