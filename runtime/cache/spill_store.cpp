#include "runtime/cache/spill_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

namespace foldkv {
namespace {

Status failed(const char* what) {
  const int code = errno;
  return file_error(code, absl::StrCat(what, ": ", std::strerror(code)));
}

}  // namespace

StatusOr<std::shared_ptr<SpillStore>> SpillStore::create(const std::string& directory) {
  std::string path = directory + "/foldkv-spill-XXXXXX";
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return failed("no file can be made in the spill directory");
  unlink(path.c_str());
  return std::shared_ptr<SpillStore>(new SpillStore(descriptor));
}

SpillStore::~SpillStore() { close(descriptor_); }

int64_t SpillStore::reserve(int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, available] = *range;
    if (available < bytes) continue;
    if (available > bytes) free_.emplace_hint(std::next(range), offset + bytes, available - bytes);
    free_.erase(range);
    return offset;
  }
  const int64_t offset = end_;
  end_ += bytes;
  return offset;
}

void SpillStore::release(int64_t offset, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  if (offset + bytes < end_) {
    try {
      free_.emplace(offset, bytes);
    } catch (const std::bad_alloc&) {
      // Giving back must not fail: this stretch stays unused until the file ends before it.
    }
    return;
  }
  end_ = offset;
  // The disk has it back. Should that fail, the next one to write uses it.
  if (ftruncate(descriptor_, end_) != 0) return;
}

Status SpillStore::write(int64_t offset, const std::byte* piece, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t written = pwrite(descriptor_, piece + done, static_cast<size_t>(bytes - done), offset + done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("the spill file cannot be written");
    done += written;
  }
  return absl::OkStatus();
}

Status SpillStore::read(int64_t offset, std::byte* piece, int64_t bytes) const {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t got = pread(descriptor_, piece + done, static_cast<size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("the spill file cannot be read");
    if (got == 0) return corrupt_error("the spill file is shorter than what was written");
    done += got;
  }
  return absl::OkStatus();
}

int64_t SpillStore::end() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return end_;
}

}  // namespace foldkv
