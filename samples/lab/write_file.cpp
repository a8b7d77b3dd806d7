#include "samples/lab/write_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

absl::Status write_temporary(const std::string& path, std::initializer_list<std::span<const std::byte>> parts) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const std::span<const std::byte> part : parts) {
    file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
  }
  file.close();
  if (file) return absl::OkStatus();
  std::error_code code;
  std::filesystem::remove(path, code);
  return absl::InternalError(absl::StrCat("cannot write ", path));
}

}  // namespace

absl::Status write_file(const std::string& path, std::initializer_list<std::span<const std::byte>> parts) {
  const std::string temporary = path + ".part";
  LAB_RETURN_IF_ERROR(write_temporary(temporary, parts));
  std::error_code code;
  std::filesystem::rename(temporary, path, code);
  if (code) return absl::InternalError(absl::StrCat("cannot rename ", temporary, ": ", code.message()));
  return absl::OkStatus();
}

absl::Status check_writable(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is a folder"));
  }
  const std::string temporary = path + ".part";
  LAB_RETURN_IF_ERROR(write_temporary(temporary, {}));
  std::filesystem::remove(temporary, code);
  return absl::OkStatus();
}

}  // namespace foldkv_lab
