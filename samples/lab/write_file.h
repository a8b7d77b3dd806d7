#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace foldkv_lab {

// Writes the parts, one after the other, to a file beside `path` first and then renames it, so that the file is there
// whole or not at all.
[[nodiscard]] absl::Status write_file(const std::string& path,
                                      std::initializer_list<std::span<const std::byte>> parts);

// An error when write_file could not write there. What stands at `path` stays.
[[nodiscard]] absl::Status check_writable(const std::string& path);

}  // namespace foldkv_lab
