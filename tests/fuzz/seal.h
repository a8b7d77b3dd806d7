#pragma once

#include <cstddef>
#include <cstdint>

namespace foldkv::fuzz {

// Gives a file (runtime/profile/sealed_file.h) a length and a checksum that fit, so that what lies behind them is
// tested too. Returns the new size. Files too short for a trailer stay as they are.
[[nodiscard]] size_t seal(uint8_t* data, size_t size);

}  // namespace foldkv::fuzz
