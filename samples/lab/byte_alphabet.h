#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace foldkv_lab {

// Byte-level vocabularies write every byte as a printable character: bytes that are printable in Latin-1 stand for
// themselves, the 68 others for the characters from U+0100 on, in rising order (so that a blank becomes U+0120).
[[nodiscard]] std::string character_of_byte(uint8_t byte);  // in UTF-8
[[nodiscard]] std::optional<uint8_t> byte_of_character(int32_t code);

}  // namespace foldkv_lab
