#include "runtime/cache/snapshot/snapshot_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "absl/cleanup/cleanup.h"

namespace foldkv {
namespace {

Status failed(absl::string_view what, const std::string& path) {
  const int code = errno;
  return with_argument(file_error(code, absl::StrCat(what, " ", path, ": ", std::strerror(code))), "path");
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("cannot write", path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// The name is on the disk only when its folder is.
Status sync_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return failed("cannot open", folder);
  const absl::Cleanup close_it = [&] { close(descriptor); };
  return fsync(descriptor) == 0 || errno == EINVAL ? absl::OkStatus() : failed("cannot force to the disk", folder);
}

struct TemporaryFile {
  std::string path;
  int descriptor = -1;
};

// Beside the file, with the permissions that a new file gets.
StatusOr<TemporaryFile> make_beside(const std::string& path) {
  std::random_device random;
  while (true) {
    TemporaryFile file{absl::StrCat(path, ".", absl::Hex(random(), absl::kZeroPad8)), -1};
    file.descriptor = open(file.path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file.descriptor >= 0) return file;
    if (errno != EEXIST) return failed("cannot write", path);
  }
}

}  // namespace

Status replace_file(const std::string& path, absl::FunctionRef<Status(WriteBytes write)> save) {
  FOLDKV_ASSIGN_OR_RETURN(const TemporaryFile file, make_beside(path));
  absl::Cleanup remove = [&] { unlink(file.path.c_str()); };
  {
    const absl::Cleanup close_it = [&] { close(file.descriptor); };
    FOLDKV_RETURN_IF_ERROR(
        save([&](std::span<const std::byte> bytes) { return write_all(file.descriptor, bytes, file.path); }));
    struct stat old {};
    if (stat(path.c_str(), &old) == 0 && fchmod(file.descriptor, old.st_mode & 07777) != 0) {
      return failed("cannot set the permissions of", file.path);
    }
    if (fsync(file.descriptor) != 0) return failed("cannot force to the disk", file.path);
  }
  if (rename(file.path.c_str(), path.c_str()) != 0) return failed("cannot replace", path);
  std::move(remove).Cancel();
  return sync_folder(folder_of(path));
}

Status read_file(const std::string& path, absl::FunctionRef<Status(ReadBytes read)> restore) {
  std::FILE* const source = std::fopen(path.c_str(), "rbe");
  if (source == nullptr) return failed("cannot open", path);
  const absl::Cleanup close_it = [&] { std::fclose(source); };
  FOLDKV_RETURN_IF_ERROR(restore([&](std::span<std::byte> bytes) {
    if (std::fread(bytes.data(), 1, bytes.size(), source) == bytes.size()) return absl::OkStatus();
    if (std::ferror(source) != 0) return failed("cannot read", path);
    return corrupt_error("the snapshot is not whole: the file ends too early");
  }));
  if (std::fgetc(source) == EOF) return absl::OkStatus();
  return corrupt_error("the snapshot is not whole or has been changed: the file goes on behind it");
}

}  // namespace foldkv
