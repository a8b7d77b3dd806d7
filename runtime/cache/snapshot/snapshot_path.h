#pragma once

#include <string>

#include "runtime/cache/snapshot/snapshot_stream.h"

namespace foldkv {

// Lets `save` write a file. At every moment, whatever ends the process, the path names the old file whole or the new
// one whole: the bytes go to another file of the same folder, then to the disk, and then that file takes the name. On
// failure the path names what it named. File error.
[[nodiscard]] Status replace_file(const std::string& path, absl::FunctionRef<Status(WriteBytes write)> save);

// Lets `restore` read a file from its beginning. File error when it cannot be opened or read, corrupt error when it
// ends too early or goes on afterwards.
[[nodiscard]] Status read_file(const std::string& path, absl::FunctionRef<Status(ReadBytes read)> restore);

}  // namespace foldkv
