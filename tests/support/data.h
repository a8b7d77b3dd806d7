#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foldkv::test {

// A file or folder of tests/data, "stories260K/stories260K.bin" for example. Throws when it does not exist.
[[nodiscard]] std::filesystem::path data_path(std::string_view relative);

// The whole file. Throws with the path when it cannot be read.
[[nodiscard]] std::vector<std::byte> read_bytes(const std::filesystem::path& path);
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

// A fresh empty folder below the system's temporary folder, removed with all it holds at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace foldkv::test
