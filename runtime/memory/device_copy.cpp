#include "runtime/memory/device_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace foldkv {

Status copy_on_device(backend::Backend& backend, std::byte* to, const std::byte* from, int64_t bytes) {
  if (backend.host_memory()) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  std::array<std::byte, 16384> buffer;
  for (int64_t done = 0; done < bytes; done += std::ssize(buffer)) {
    const int64_t piece = std::min(std::ssize(buffer), bytes - done);
    FOLDKV_RETURN_IF_ERROR(backend.copy_to_host(buffer.data(), from + done, piece));
    FOLDKV_RETURN_IF_ERROR(backend.copy_to_device(to + done, buffer.data(), piece));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
