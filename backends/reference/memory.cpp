#include "backends/reference/memory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#if defined(__unix__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace foldkv::backend::reference {

#if defined(__unix__)

StatusOr<std::byte*> reserve_memory(int64_t bytes) {
  if (bytes <= 0) return argument_error("bytes", absl::StrCat("is ", bytes, ", expected more than 0"));
  void* const memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return memory_error(absl::StrCat("cannot reserve ", bytes, " bytes: ", strerror(errno)));
#if defined(MADV_NOHUGEPAGE)
  // A huge page would make memory resident that nobody has touched. Kernels without huge pages refuse: no matter.
  (void)madvise(memory, static_cast<size_t>(bytes), MADV_NOHUGEPAGE);
#endif
  return static_cast<std::byte*>(memory);
}

void release_memory(std::byte* memory, int64_t bytes) {
  if (memory != nullptr) munmap(memory, static_cast<size_t>(bytes));
}

void discard_memory(std::byte* memory, int64_t bytes) {
  (void)madvise(memory, static_cast<size_t>(bytes), MADV_DONTNEED);
}

int64_t memory_granularity() { return sysconf(_SC_PAGESIZE); }

#else

StatusOr<std::byte*> reserve_memory(int64_t bytes) {
  if (bytes <= 0) return argument_error("bytes", absl::StrCat("is ", bytes, ", expected more than 0"));
  void* const memory = std::calloc(static_cast<size_t>(bytes), 1);
  if (memory == nullptr) return memory_error(absl::StrCat("cannot reserve ", bytes, " bytes"));
  return static_cast<std::byte*>(memory);
}

void release_memory(std::byte* memory, int64_t /*bytes*/) { std::free(memory); }

// Plain memory cannot be given back in part.
void discard_memory(std::byte* memory, int64_t bytes) { std::memset(memory, 0, static_cast<size_t>(bytes)); }

int64_t memory_granularity() { return 4096; }

#endif

}  // namespace foldkv::backend::reference
