#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace foldkv_lab {

// What the pre-tokenizers of byte-level vocabularies ask of a character.
enum class CharacterKind : uint8_t { kLetter, kNumber, kSpace, kOther };

struct Character {
  int32_t code = 0;     // -1: the byte begins no valid UTF-8 sequence
  uint32_t length = 1;  // bytes
  CharacterKind kind = CharacterKind::kOther;
};

// The character that begins at byte `start` (inside text). A byte that is not UTF-8 counts as a character of its own,
// of kind kOther, so that every text can be cut and put together again.
[[nodiscard]] Character character_at(absl::string_view text, uint64_t start);

}  // namespace foldkv_lab
