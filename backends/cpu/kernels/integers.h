#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/logits.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/transpose.h"
#include "backends/cpu/kernels/vector.h"

// Rebuilding in integers: a word holds four coordinates, and vpdpbusd multiplies four unsigned bytes, the basis plus
// 128, by four signed ones, the latents; sums begin with -128 times the sum of the latents. Sums of 32 bits are exact,
// in every order. Sets without such an instruction are as quick with f32 and have none of this.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

#if defined(__AVX512VNNI__)

constexpr int32_t kBasisBias = 128;

// Rounded half to even.
FOLDKV_INLINE int32_t nearest_integer(float number) {
  const float shifted = number + 12582912.0f;  // 1.5 * 2^23
  int32_t bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  return bits - 0x4b400000;
}

void integer_row(const float* row, int64_t count, std::byte* output) {
  float largest = 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    const float size = row[i] < 0.0f ? -row[i] : row[i];
    largest = size > largest ? size : largest;
  }
  const float scale = largest / static_cast<float>(kLargestInteger);
  __builtin_memcpy(output, &scale, sizeof scale);
  const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  std::byte* const fine = output + kIntegerRowStart;
  std::byte* const words = fine + kFineNumbers;
  for (int64_t i = 0; i < count; ++i) {
    const float steps = row[i] * inverse;
    const int32_t nearest = nearest_integer(steps);
    words[i] = static_cast<std::byte>(nearest + kBasisBias);
    if (i >= kFineNumbers) continue;
    const float lost = (steps - static_cast<float>(nearest)) / kFineUnit;
    fine[i] = static_cast<std::byte>(nearest_integer(lost) + kBasisBias);
  }
  for (int64_t i = count; i % kWordNumbers != 0; ++i) words[i] = static_cast<std::byte>(kBasisBias);
  for (int64_t i = count; i < kFineNumbers; ++i) fine[i] = static_cast<std::byte>(kBasisBias);
}

// Where the 8 bits that end with, or hold, the code of each of 64 coordinates lie in 64 bytes: bytes that are brought
// into each quadword, and the bit of it at which each coordinate's byte begins.
struct BytePlaces {
  __m512i bytes;
  __m512i bits;
};

FOLDKV_INLINE BytePlaces byte_places(const IntegerGroup& group) {
  alignas(64) uint8_t bytes[64];
  alignas(64) uint8_t bits[64];
  // Of a trellis string the byte before it is read too; a window ends with the bits of its step.
  const bool trellis = group.tables != nullptr;
  for (int first = 0; first < 64; first += 8) {
    int begin[8];
    for (int i = 0; i < 8; ++i) {
      const int step = (first + i) / static_cast<int>(group.step);
      begin[i] = (trellis ? step + 1 : step) * group.bits;
    }
    for (int i = 0; i < 8; ++i) {
      bytes[first + i] = static_cast<uint8_t>(begin[0] / 8 + i);
      bits[first + i] = static_cast<uint8_t>(begin[i] - begin[0] / 8 * 8);
    }
  }
  return {_mm512_load_si512(bytes), _mm512_load_si512(bits)};
}

struct ByteTables {
  __m512i parts[2][4];
};

FOLDKV_INLINE ByteTables byte_tables(const IntegerGroup& group) {
  ByteTables tables;
  FOLDKV_UNROLL for (int v = 0; v < 2; ++v) {
    const int8_t* table = group.tables + (v < group.step ? v : 0) * 256;
    FOLDKV_UNROLL for (int part = 0; part < 4; ++part) tables.parts[v][part] = _mm512_loadu_si512(table + part * 64);
  }
  return tables;
}

FOLDKV_INLINE __m512i look_up(const __m512i (&parts)[4], __m512i windows) {
  const __m512i low = _mm512_permutex2var_epi8(parts[0], windows, parts[1]);
  const __m512i high = _mm512_permutex2var_epi8(parts[2], windows, parts[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(windows), low, high);
}

FOLDKV_INLINE __mmask64 first_bytes(int64_t count) {
  return count >= 64 ? ~__mmask64{0} : count <= 0 ? __mmask64{0} : (__mmask64{1} << count) - 1;
}

// 64 coordinates of a token from `first` on.
template <bool kTrellis, bool kPairs>
FOLDKV_INLINE __m512i decode_bytes(const IntegerGroup& group, const BytePlaces& places, const ByteTables& tables,
                                   const uint8_t* row, int64_t first) {
  const int64_t begin = group.byte_offset + first / group.step * group.bits / 8 - (kTrellis ? 1 : 0);
  __mmask64 readable = first_bytes(group.row_bytes - begin);
  if (kTrellis && first == 0 && !group.continues) readable &= ~__mmask64{1};
  // The unmasked intrinsics make gcc 12 warn of their own undefined operands.
  const __mmask64 all = ~__mmask64{0};
  const __m512i codes = _mm512_maskz_loadu_epi8(readable, row + begin);
  const __m512i bytes = _mm512_maskz_permutexvar_epi8(all, places.bytes, codes);
  const __m512i found = _mm512_maskz_multishift_epi64_epi8(all, places.bits, bytes);
  const __mmask64 live = first_bytes(group.count - first);
  if constexpr (kTrellis) {
    const __m512i even = look_up(tables.parts[0], found);
    if constexpr (!kPairs) return _mm512_maskz_mov_epi8(live, even);
    const __m512i odd = look_up(tables.parts[1], found);
    return _mm512_maskz_mov_epi8(live, _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaau, even, odd));
  }
  const __m512i mask = _mm512_set1_epi8(static_cast<char>((1 << group.bits) - 1));
  const __m512i bias = _mm512_set1_epi8(static_cast<char>(1 << (group.bits - 1)));
  return _mm512_maskz_sub_epi8(live, _mm512_and_si512(found, mask), bias);
}

template <bool kTrellis, bool kPairs>
void decode_group(const IntegerGroup& group) {
  const BytePlaces places = byte_places(group);
  ByteTables tables = {};
  if constexpr (kTrellis) tables = byte_tables(group);
  const int64_t words = (group.count + 3) / 4;
  for (int64_t first = 0; first < group.count; first += 64) {
    const int64_t some = words - first / 4 < kLanes ? words - first / 4 : kLanes;
    for (int64_t token = 0; token < kTile; token += kLanes) {
      Word square[kLanes];
      FOLDKV_UNROLL for (int i = 0; i < kLanes; ++i) {
        const uint8_t* row = group.rows[token + i];
        square[i] = row == nullptr ? Word{} : (Word)decode_bytes<kTrellis, kPairs>(group, places, tables, row, first);
      }
      transpose_square(square);
      uint32_t* output = group.words + first / 4 * kTile + token;
      for (int64_t i = 0; i < some; ++i) store_words(output + i * kTile, square[i]);
    }
  }
}

void decode_integers(const IntegerGroup& group) {
  if (group.tables == nullptr) return decode_group<false, false>(group);
  if (group.step == 1) return decode_group<true, false>(group);
  decode_group<true, true>(group);
}

// The compiler's intrinsic copies the sum before each use.
FOLDKV_INLINE void add_products(Int& sum, Word basis, Word latents) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(basis), "v"(latents));
}

void start_integer_sums(const IntegerProduct& p) {
  const Word bias = broadcast_word(0x80808080u);
  for (int64_t index = 0; index < p.group_count; ++index) {
    const IntegerScale& group = p.groups[index];
    for (int64_t token = 0; token < kTile; token += kLanes) {
      Int sum = {};
      for (int64_t word = 0; word < group.word_count; ++word) {
        add_products(sum, bias, load_words(p.latents + (group.first_word + word) * kTile + token));
      }
      store_words(group.starts + token, (Word)-sum);
    }
  }
}

// Rows of sums held in registers beside one another, of a whole tile each.
constexpr int kIntegerRows = 4;

// A word of a row of the basis times those of all tokens. In one piece: the compiler would copy some of the sums.
FOLDKV_INLINE void add_row_products(Int (&sums)[kTileVectors], const std::byte* basis,
                                    const Word (&latents)[kTileVectors]) {
  static_assert(kTileVectors == 4);
  Word word;
  asm("vpbroadcastd %5, %4\n\t"
      "vpdpbusd %6, %4, %0\n\t"
      "vpdpbusd %7, %4, %1\n\t"
      "vpdpbusd %8, %4, %2\n\t"
      "vpdpbusd %9, %4, %3"
      : "+v"(sums[0]), "+v"(sums[1]), "+v"(sums[2]), "+v"(sums[3]), "=&v"(word)
      : "m"(*reinterpret_cast<const uint32_t*>(basis)), "v"(latents[0]), "v"(latents[1]), "v"(latents[2]),
        "v"(latents[3]));
}

struct IntegerBlock {
  const std::byte* rows;  // of the basis
  int64_t stride;
  const float* row_start;  // or null
  float* output;
};

// Adds what a group gives to so many rows of a tile, or begins with it.
template <int kRows, bool kFirst>
__attribute__((noinline)) void integer_block(const IntegerScale& group, const uint32_t* latents,
                                             const IntegerBlock& block) {
  Int sums[kRows][kTileVectors];
  FOLDKV_UNROLL for (int v = 0; v < kTileVectors; ++v) {
    const Int start = (Int)load_words(group.starts + v * kLanes);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) sums[r][v] = start;
  }
  const std::byte* basis = block.rows + kIntegerRowStart + group.basis_word * kWordNumbers;
  latents += group.first_word * kTile;
  const int64_t stride = block.stride;
  for (int64_t word = 0; word < group.word_count; ++word, latents += kTile, basis += kWordNumbers) {
    Word right[kTileVectors];
    FOLDKV_UNROLL for (int v = 0; v < kTileVectors; ++v) right[v] = load_words(latents + v * kLanes);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) add_row_products(sums[r], basis + r * stride, right);
  }
  float* output = block.output;
  FOLDKV_UNROLL for (int r = 0; r < kRows; ++r, output += kTile) {
    float row_scale;
    __builtin_memcpy(&row_scale, block.rows + r * stride, sizeof row_scale);
    const Float scale = broadcast(row_scale);
    const Float start = broadcast(kFirst && block.row_start != nullptr ? block.row_start[r] : 0.0f);
    FOLDKV_UNROLL for (int v = 0; v < kTileVectors; ++v) {
      const Float before = kFirst ? start : load(output + v * kLanes);
      const Float factor = load(group.scales + v * kLanes) * scale;
      store(output + v * kLanes, multiply_add(__builtin_convertvector(sums[r][v], Float), factor, before));
    }
  }
}

template <bool kFirst>
FOLDKV_INLINE void integer_rows(const IntegerProduct& p, const IntegerScale& group, int64_t first, int64_t end) {
  for (int64_t row = first; row < end;) {
    const IntegerBlock block = {.rows = p.basis + row * p.basis_stride,
                                .stride = p.basis_stride,
                                .row_start = p.row_start == nullptr ? nullptr : p.row_start + row,
                                .output = p.output + row * kTile};
    if (end - row >= kIntegerRows) {
      integer_block<kIntegerRows, kFirst>(group, p.latents, block);
      row += kIntegerRows;
    } else {
      integer_block<1, kFirst>(group, p.latents, block);
      ++row;
    }
  }
}

#if defined(__AMX_INT8__)

// Tiles of 16 rows x 64 bytes: of the basis 16 rows and 64 coordinates, of the latents 16 words and 16 tokens, and 16 x
// 16 sums. Four of sums take part at once.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileWords = 16;

struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

struct TileSums {
  alignas(64) int32_t numbers[4][kTileRows][kLanes];  // rows 0 to 15, then 16 to 31; of each, 16 tokens, then the next
};

// Sums of 32 rows and 32 tokens over the whole tiles of a group.
FOLDKV_INLINE void multiply_tiles(const IntegerScale& group, const std::byte* basis, int64_t stride,
                                  const uint32_t* latents, TileSums& sums) {
  const std::byte* const lower = basis + kTileRows * stride;
  constexpr int64_t kLatentStride = kTile * 4;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t word = 0; word < group.word_count; word += kTileWords) {
    _tile_loadd(4, basis + word * kWordNumbers, stride);
    _tile_loadd(6, latents + word * kTile, kLatentStride);
    _tile_loadd(7, latents + word * kTile + kLanes, kLatentStride);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(5, lower + word * kWordNumbers, stride);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_stored(0, sums.numbers[0], 64);
  _tile_stored(1, sums.numbers[1], 64);
  _tile_stored(2, sums.numbers[2], 64);
  _tile_stored(3, sums.numbers[3], 64);
}

// Rows [row, row + 32).
template <bool kFirst>
FOLDKV_INLINE void tile_rows(const IntegerProduct& p, const IntegerScale& group, int64_t row) {
  const std::byte* const rows = p.basis + row * p.basis_stride;
  const std::byte* const basis = rows + kIntegerRowStart + group.basis_word * kWordNumbers;
  const uint32_t* const latents = p.latents + group.first_word * kTile;
  TileSums sums;
  for (int64_t token = 0; token < kTile; token += 2 * kLanes) {
    multiply_tiles(group, basis, p.basis_stride, latents + token, sums);
    Float scales[2];
    Int starts[2];
    FOLDKV_UNROLL for (int v = 0; v < 2; ++v) {
      scales[v] = load(group.scales + token + v * kLanes);
      starts[v] = (Int)load_words(group.starts + token + v * kLanes);
    }
    for (int64_t r = 0; r < 2 * kTileRows; ++r) {
      float row_scale;
      __builtin_memcpy(&row_scale, rows + r * p.basis_stride, sizeof row_scale);
      float* const output = p.output + (row + r) * kTile + token;
      const Float start = broadcast(kFirst && p.row_start != nullptr ? p.row_start[row + r] : 0.0f);
      FOLDKV_UNROLL for (int v = 0; v < 2; ++v) {
        const Int sum = (Int)load_words(sums.numbers[r / kTileRows * 2 + v][r % kTileRows]) + starts[v];
        const Float before = kFirst ? start : load(output + v * kLanes);
        store(output + v * kLanes,
              multiply_add(__builtin_convertvector(sum, Float), scales[v] * broadcast(row_scale), before));
      }
    }
  }
}

// Groups of whole tiles; what is left of rows, and other groups, as without tiles. The sums are the same integers.
template <bool kFirst>
FOLDKV_INLINE void group_rows(const IntegerProduct& p, const IntegerScale& group, int64_t first, int64_t end) {
  if (group.word_count % kTileWords == 0) {
    for (; end - first >= 2 * kTileRows; first += 2 * kTileRows) tile_rows<kFirst>(p, group, first);
  }
  integer_rows<kFirst>(p, group, first, end);
}

#else

template <bool kFirst>
FOLDKV_INLINE void group_rows(const IntegerProduct& p, const IntegerScale& group, int64_t first, int64_t end) {
  integer_rows<kFirst>(p, group, first, end);
}

#endif

// Rows whose sums stay in the first cache, beside a group's latents, while all groups are added to them.
constexpr int64_t kRowsAtOnce = 64;

void integer_product(const IntegerProduct& p) {
#if defined(__AMX_INT8__)
  const TileShapes shapes;
  _tile_loadconfig(&shapes);
#endif
  for (int64_t first = 0; first < p.rows; first += kRowsAtOnce) {
    const int64_t end = first + kRowsAtOnce < p.rows ? first + kRowsAtOnce : p.rows;
    group_rows<true>(p, p.groups[0], first, end);
    for (int64_t index = 1; index < p.group_count; ++index) group_rows<false>(p, p.groups[index], first, end);
  }
#if defined(__AMX_INT8__)
  _tile_release();
#endif
}

#endif

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
