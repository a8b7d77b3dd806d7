#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/guard.h"

namespace foldkv::abi {

// Writes a file into the caller's buffer and its size into *size; a null buffer only asks for the size.
[[nodiscard]] inline Status write_bytes(const std::vector<uint8_t>& bytes, void* buffer, size_t capacity, size_t* size) {
  if (buffer != nullptr) {
    if (capacity < bytes.size()) {
      return argument_error("capacity", absl::StrCat("is ", capacity, ", expected ", bytes.size(), " or more"));
    }
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(buffer));
  }
  *size = bytes.size();
  return absl::OkStatus();
}

}  // namespace foldkv::abi
