#include "runtime/cache/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/fingerprint.h"

namespace foldkv {
namespace {

Status failed(const char* what) {
  const int code = errno;
  return file_error(code, absl::StrCat(what, ": ", std::strerror(code)));
}

}  // namespace

StatusOr<std::unique_ptr<SpillFile>> SpillFile::create(const std::string& directory) {
  std::string path = directory + "/foldkv-spill-XXXXXX";
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return failed("no file can be made in the spill directory");
  unlink(path.c_str());
  return std::unique_ptr<SpillFile>(new SpillFile(descriptor));
}

SpillFile::~SpillFile() { close(descriptor_); }

Status SpillFile::write(const std::byte* piece, int64_t bytes) {
  pieces_.push_back({bytes_, fingerprint_of_bytes(piece, static_cast<size_t>(bytes))});
  for (int64_t done = 0; done < bytes;) {
    const ssize_t written = pwrite(descriptor_, piece + done, static_cast<size_t>(bytes - done), bytes_ + done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("the spill file cannot be written");
    done += written;
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

Status SpillFile::read(int64_t index, std::byte* piece, int64_t bytes) const {
  const Piece& written = pieces_[static_cast<size_t>(index)];
  for (int64_t done = 0; done < bytes;) {
    const ssize_t got = pread(descriptor_, piece + done, static_cast<size_t>(bytes - done), written.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("the spill file cannot be read");
    if (got == 0) return corrupt_error("the spill file is shorter than what was written");
    done += got;
  }
  if (fingerprint_of_bytes(piece, static_cast<size_t>(bytes)) != written.checksum) {
    return corrupt_error("the spill file does not hold what was written: a checksum does not fit");
  }
  return absl::OkStatus();
}

}  // namespace foldkv
