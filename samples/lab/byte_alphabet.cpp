#include "samples/lab/byte_alphabet.h"

#include <array>

namespace foldkv_lab {
namespace {

constexpr int32_t kFirstSubstitute = 0x100;
constexpr int32_t kSubstitutes = 68;

constexpr bool stands_for_itself(int32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

struct Alphabet {
  std::array<int32_t, 256> codes{};           // character of each byte
  std::array<uint8_t, kSubstitutes> bytes{};  // byte of each substitute
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  int32_t substitutes = 0;
  for (int32_t byte = 0; byte < 256; ++byte) {
    if (stands_for_itself(byte)) {
      alphabet.codes[static_cast<size_t>(byte)] = byte;
      continue;
    }
    alphabet.codes[static_cast<size_t>(byte)] = kFirstSubstitute + substitutes;
    alphabet.bytes[static_cast<size_t>(substitutes)] = static_cast<uint8_t>(byte);
    ++substitutes;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string character_of_byte(uint8_t byte) {
  const int32_t code = kAlphabet.codes[byte];
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

std::optional<uint8_t> byte_of_character(int32_t code) {
  if (code >= 0 && code < kFirstSubstitute && stands_for_itself(code)) return static_cast<uint8_t>(code);
  if (code >= kFirstSubstitute && code < kFirstSubstitute + kSubstitutes) {
    return kAlphabet.bytes[static_cast<size_t>(code - kFirstSubstitute)];
  }
  return std::nullopt;
}

}  // namespace foldkv_lab
