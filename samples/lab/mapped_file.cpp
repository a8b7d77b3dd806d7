#include "samples/lab/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {

absl::StatusOr<MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat attributes = {};
  if (::fstat(descriptor, &attributes) != 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
    ::close(descriptor);
    return status;
  }
  if (!S_ISREG(attributes.st_mode) || attributes.st_size == 0) {
    ::close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file with content"));
  }
  const size_t size = static_cast<size_t>(attributes.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int map_error = errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(map_error, absl::StrCat("cannot map ", path));
  return MappedFile({static_cast<const std::byte*>(memory), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::string> read_text_file(const std::string& path) {
  LAB_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

}  // namespace foldkv_lab
