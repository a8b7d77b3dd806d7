#include "samples/lab/unicode.h"

#include <utf8proc.h>

namespace foldkv_lab {
namespace {

// Unicode's White_Space: separators, and those control characters that move the cursor.
bool is_space(int32_t code, utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP ||
         (code >= 0x09 && code <= 0x0d) || code == 0x85;
}

CharacterKind kind_of(int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterKind::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterKind::kNumber;
    default: return is_space(code, category) ? CharacterKind::kSpace : CharacterKind::kOther;
  }
}

}  // namespace

Character character_at(absl::string_view text, uint64_t start) {
  // Four bytes hold every sequence; the limit keeps the length inside the library's signed type.
  const absl::string_view rest = text.substr(start, 4);
  utf8proc_int32_t code = -1;
  const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                                                   static_cast<utf8proc_ssize_t>(rest.size()), &code);
  if (length <= 0) return Character{-1, 1, CharacterKind::kOther};
  return Character{code, static_cast<uint32_t>(length), kind_of(code)};
}

}  // namespace foldkv_lab
