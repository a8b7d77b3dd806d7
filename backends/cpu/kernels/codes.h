#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/transpose.h"
#include "backends/cpu/kernels/vector.h"

// Bit strings of codes: written, read token by token, read tile by tile.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

// Eight codes, one in each byte, pushed together to 8 * bits bits: pairs, then fours, then all eight.
FOLDKV_INLINE uint64_t pack_eight(uint64_t codes, int bits) {
  codes = (codes & 0x00ff00ff00ff00ffu) | ((codes & 0xff00ff00ff00ff00u) >> (8 - bits));
  codes = (codes & 0x0000ffff0000ffffu) | ((codes & 0xffff0000ffff0000u) >> (16 - 2 * bits));
  return (codes & 0x00000000ffffffffu) | ((codes & 0xffffffff00000000u) >> (32 - 4 * bits));
}

FOLDKV_INLINE uint64_t unpack_eight(uint64_t packed, int bits) {
  const uint64_t fours = (uint64_t{1} << (4 * bits)) - 1;
  packed = (packed & fours) | ((packed & ~fours) << (32 - 4 * bits));
  const uint64_t pairs = ((uint64_t{1} << (2 * bits)) - 1) * 0x0000000100000001u;
  packed = (packed & pairs) | ((packed & ~pairs) << (16 - 2 * bits));
  const uint64_t ones = ((uint64_t{1} << bits) - 1) * 0x0001000100010001u;
  return (packed & ones) | ((packed & ~ones) << (8 - bits));
}

// unsigned codes [count] to a bit string of ceil(count * bits / 8) bytes; unused high bits of the last byte are zero.
void pack_codes(const uint8_t* codes, int64_t count, int bits, uint8_t* packed) {
  for (int64_t i = 0; i < count; i += 8) {
    const int64_t some = count - i < 8 ? count - i : 8;
    uint64_t eight = 0;
    __builtin_memcpy(&eight, codes + i, static_cast<size_t>(some));
    eight = pack_eight(eight, bits);
    __builtin_memcpy(packed, &eight, static_cast<size_t>((some * bits + 7) / 8));
    packed += bits;
  }
}

void decode_row(const uint8_t* codes, int64_t count, int bits, float scale, float* latents) {
  const Int bias = broadcast_int(1 << (bits - 1));
  const Float factor = broadcast(scale);
  alignas(64) uint8_t unpacked[kLanes < 8 ? 8 : kLanes];
  for (int64_t i = 0; i < count; i += 8) {
    const int64_t some = count - i < 8 ? count - i : 8;
    uint64_t eight = 0;
    __builtin_memcpy(&eight, codes, static_cast<size_t>((some * bits + 7) / 8));
    codes += bits;
    eight = unpack_eight(eight, bits);
    __builtin_memcpy(unpacked, &eight, 8);
    for (int64_t k = 0; k < some; ++k) {
      latents[i + k] = static_cast<float>(static_cast<int32_t>(unpacked[k]) - bias[0]) * factor[0];
    }
  }
}

// Words of 32 bits of the group's bit strings, tokens in lanes: output [words][64]
FOLDKV_INLINE void transpose_codes(const CodeTile& tile, int64_t words, uint32_t* output) {
  for (int64_t token = 0; token < kTile; token += kLanes) {
    for (int64_t word = 0; word < words; word += kLanes) {
      Word square[kLanes];
      FOLDKV_UNROLL for (int i = 0; i < kLanes; ++i) {
        square[i] = load_words(tile.rows + (token + i) * tile.row_stride + tile.byte_offset + word * 4);
      }
      transpose_square(square);
      FOLDKV_UNROLL for (int i = 0; i < kLanes; ++i) store_words(output + (word + i) * kTile + token, square[i]);
    }
  }
}

// scratch: 64 words for each 4 bytes of the group's codes, rounded up to kWidthPadding words
void decode_tile(const CodeTile& tile, uint32_t* scratch, float* latents) {
  const int64_t words = (tile.count * tile.bits + 31) / 32;
  transpose_codes(tile, words, scratch);
  const Int bias = broadcast_int(1 << (tile.bits - 1));
  const Word mask = broadcast_word((1u << tile.bits) - 1);
  for (int64_t i = 0; i < tile.count; ++i) {
    const int64_t bit = i * tile.bits;
    const auto shift = static_cast<int>(bit % 32);
    const uint32_t* words_of_code = scratch + bit / 32 * kTile;
    const bool straddles = shift + tile.bits > 32;
    for (int token = 0; token < kTile; token += kLanes) {
      Word code = load_words(words_of_code + token) >> shift;
      if (straddles) code |= load_words(words_of_code + kTile + token) << (32 - shift);
      const Float centred = __builtin_convertvector((Int)(code & mask) - bias, Float);
      store(latents + i * kTile + token, centred * load(tile.scales + token));
    }
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
