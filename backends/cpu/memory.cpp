#include "backends/cpu/memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#else
#include <cstring>
#include <new>
#endif

namespace foldkv::backend::cpu {

#if defined(__linux__)

int64_t system_page_bytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

StatusOr<std::byte*> reserve_system_memory(int64_t bytes) {
  if (bytes <= 0) return argument_error("bytes", absl::StrCat("is ", bytes, ", expected more than 0"));
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return memory_error(
        absl::StrCat("the system does not reserve ", bytes, " bytes of address space (errno ", errno, ")"));
  }
  // Huge pages would make memory resident that nobody touched, and the ledger would no longer tell what is used.
  // Systems without them refuse the advice, and lose nothing.
  madvise(memory, static_cast<size_t>(bytes), MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(memory);
}

void release_system_memory(std::byte* memory, int64_t bytes) {
  if (memory != nullptr) munmap(memory, static_cast<size_t>(bytes));
}

void discard_system_memory(std::byte* memory, int64_t bytes) {
  if (bytes > 0) madvise(memory, static_cast<size_t>(bytes), MADV_DONTNEED);
}

#else

// Without mmap memory is allocated whole; discarding it only clears it.
int64_t system_page_bytes() { return 4096; }

StatusOr<std::byte*> reserve_system_memory(int64_t bytes) {
  if (bytes <= 0) return argument_error("bytes", absl::StrCat("is ", bytes, ", expected more than 0"));
  void* memory = ::operator new(static_cast<size_t>(bytes), std::align_val_t(4096), std::nothrow);
  if (memory == nullptr) return memory_error(absl::StrCat("the system does not give ", bytes, " bytes"));
  std::memset(memory, 0, static_cast<size_t>(bytes));
  return static_cast<std::byte*>(memory);
}

void release_system_memory(std::byte* memory, int64_t) { ::operator delete(memory, std::align_val_t(4096)); }

void discard_system_memory(std::byte* memory, int64_t bytes) { std::memset(memory, 0, static_cast<size_t>(bytes)); }

#endif

}  // namespace foldkv::backend::cpu
