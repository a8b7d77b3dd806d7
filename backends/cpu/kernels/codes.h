#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/numbers.h"
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

// Where the codes of eight or sixteen adjacent coordinates lie in the 16 bytes that begin with the first of them: a
// register's worth, or two where registers are small (an eighth coordinate always begins on a byte).
constexpr int kSpread = kLanes < 8 ? 8 : kLanes;
constexpr int kSpreadVectors = kSpread / kLanes;

struct CodePlaces {
#if defined(__AVX2__)
  Word shuffle;  // two bytes for each lane, the others zero
#else
  int byte[kSpread];
#endif
  Word shift[kSpreadVectors];
};

FOLDKV_INLINE CodePlaces code_places(int bits) {
  CodePlaces places = {};
  for (int lane = 0; lane < kSpread; ++lane) {
    const int byte = lane * bits / 8;
    places.shift[lane / kLanes][lane % kLanes] = static_cast<uint32_t>(lane * bits % 8);
#if defined(__AVX2__)
    const int next = byte + 1 < 16 ? byte + 1 : 0x80;
    places.shuffle[lane] = static_cast<uint32_t>(byte | next << 8) | 0x80800000u;
#else
    places.byte[lane] = byte;
#endif
  }
  return places;
}

// One code in each lane; bits above it are of other codes. Reads 16 bytes, whatever the width.
FOLDKV_INLINE Word spread_codes(const uint8_t* from, const CodePlaces& places, int vector) {
#if defined(__AVX2__)
  static_cast<void>(vector);
  __m128i bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
#if defined(__AVX512F__)
  // The unmasked intrinsic makes gcc 12 warn of its own undefined operand.
  const __m512i copies = _mm512_maskz_broadcast_i32x4(0xffff, bytes);
  return (Word)_mm512_shuffle_epi8(copies, (__m512i)places.shuffle) >> places.shift[0];
#else
  return (Word)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), (__m256i)places.shuffle) >> places.shift[0];
#endif
#else
  Word codes;
  for (int lane = 0; lane < kLanes; ++lane) {
    uint16_t pair;
    __builtin_memcpy(&pair, from + places.byte[vector * kLanes + lane], sizeof pair);
    codes[lane] = pair;
  }
  return codes >> places.shift[vector];
#endif
}

// Tokens [0, live) of the tile to rows [live][stride].
void decode_rows(const CodeTile& tile, int64_t live, float* latents, int64_t stride) {
  const CodePlaces places = code_places(tile.bits);
  const Int bias = broadcast_int(1 << (tile.bits - 1));
  const Word mask = broadcast_word((1u << tile.bits) - 1);
  for (int64_t token = 0; token < live; ++token) {
    const uint8_t* codes = tile.rows + token * tile.row_stride + tile.byte_offset;
    const Float scale = broadcast(tile.scales[token]);
    float* row = latents + token * stride;
    for (int64_t first = 0; first < tile.count; first += kSpread, codes += kSpread * tile.bits / 8) {
      FOLDKV_UNROLL for (int vector = 0; vector < kSpreadVectors; ++vector) {
        const int64_t i = first + vector * kLanes;
        const Word code = spread_codes(codes, places, vector) & mask;
        const Float numbers = __builtin_convertvector((Int)code - bias, Float) * scale;
        if (i < tile.count) store_some(row + i, numbers, tile.count - i);
      }
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
