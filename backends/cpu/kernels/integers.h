#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/transpose.h"
#include "backends/cpu/kernels/vector.h"

// Rebuilding in integers. With VNNI a word holds four coordinates: vpdpbusd multiplies four unsigned bytes, the basis
// plus 128, by four signed ones, the latents; sums begin with -128 times the sum of the latents. Elsewhere a word holds
// two numbers of 16 bits. Sums of 32 bits are exact, so that both and every order give the same integers.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

#if defined(__AVX512VNNI__)
constexpr int64_t kWordNumbers = 4;
constexpr int32_t kBasisBias = 128;
#else
constexpr int64_t kWordNumbers = 2;
constexpr int32_t kBasisBias = 0;
#endif

// Numbers of a row of a basis that one register holds.
FOLDKV_INLINE void put_integer(int32_t number, int64_t index, std::byte* words) {
#if defined(__AVX512VNNI__)
  words[index] = static_cast<std::byte>(number + kBasisBias);
#else
  const auto wide = static_cast<int16_t>(number);
  __builtin_memcpy(words + index * 2, &wide, sizeof wide);
#endif
}

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
  std::byte* words = output + kIntegerRowStart;
  for (int64_t i = 0; i < count; ++i) put_integer(nearest_integer(row[i] * inverse), i, words);
  for (int64_t i = count; i % kWordNumbers != 0; ++i) put_integer(0, i, words);
}

#if defined(__AVX512VNNI__)

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

#else

// The 8 bits of a string that begin at this bit; zeros before its first byte and beyond the row.
FOLDKV_INLINE uint32_t bits_at(const uint8_t* row, int64_t row_bytes, int64_t bit) {
  const int64_t byte = bit >> 3;
  const uint32_t low = row[byte];
  const uint32_t high = byte + 1 < row_bytes ? row[byte + 1] : 0;
  return (low | high << 8) >> (bit & 7) & 0xffu;
}

FOLDKV_INLINE int32_t decode_integer(const IntegerGroup& group, const uint8_t* row, int64_t coordinate) {
  const int64_t step = coordinate / group.step;
  const int64_t begin = group.byte_offset * 8;
  if (group.tables == nullptr) {
    const uint32_t code = bits_at(row, group.row_bytes, begin + step * group.bits) & ((1u << group.bits) - 1);
    return static_cast<int32_t>(code) - (1 << (group.bits - 1));
  }
  const int64_t bit = (step + 1) * group.bits - 8;
  uint32_t window;
  if (bit >= 0 || group.continues) {
    window = bits_at(row, group.row_bytes, begin + bit);
  } else {
    window = static_cast<uint32_t>(row[group.byte_offset]) << -bit & 0xffu;
  }
  return group.tables[coordinate % group.step * 256 + window];
}

void decode_integers(const IntegerGroup& group) {
  const int64_t words = (group.count + 1) / 2;
  for (int64_t token = 0; token < kTile; ++token) {
    const uint8_t* row = group.rows[token];
    for (int64_t word = 0; word < words; ++word) {
      int16_t pair[2] = {};
      for (int64_t i = 0; row != nullptr && i < 2 && word * 2 + i < group.count; ++i) {
        pair[i] = static_cast<int16_t>(decode_integer(group, row, word * 2 + i));
      }
      __builtin_memcpy(group.words + word * kTile + token, pair, sizeof pair);
    }
  }
}

FOLDKV_INLINE void add_products(Int& sum, Word basis, Word latents) {
#if defined(__AVX512F__)
  sum += (Int)_mm512_madd_epi16((__m512i)basis, (__m512i)latents);
#elif defined(__AVX2__)
  sum += (Int)_mm256_madd_epi16((__m256i)basis, (__m256i)latents);
#else
  const Int low = ((Int)(basis << 16) >> 16) * ((Int)(latents << 16) >> 16);
  sum += low + ((Int)basis >> 16) * ((Int)latents >> 16);
#endif
}

#endif

void start_integer_sums(const IntegerProduct& p) {
  for (int64_t index = 0; index < p.group_count; ++index) {
    const IntegerScale& group = p.groups[index];
    for (int64_t token = 0; token < kTile; token += kLanes) {
      Int sum = {};
#if defined(__AVX512VNNI__)
      const Word ones = broadcast_word(0x80808080u);  // the bias of the basis
      for (int64_t word = 0; word < group.word_count; ++word) {
        add_products(sum, ones, load_words(p.latents + (group.first_word + word) * kTile + token));
      }
#endif
      store_words(group.starts + token, (Word)-sum);
    }
  }
}

// Rows x vectors of sums held in registers.
#if defined(__AVX512F__)
constexpr int kIntegerRows = 4;
constexpr int kIntegerVectors = 4;
#elif defined(__AVX2__)
constexpr int kIntegerRows = 2;
constexpr int kIntegerVectors = 4;
#else
constexpr int kIntegerRows = 2;
constexpr int kIntegerVectors = 2;
#endif

template <int kRows>
__attribute__((noinline)) void integer_block(const IntegerProduct& p, const IntegerScale& group, int64_t row,
                                             int64_t token, bool first) {
  Int sums[kRows][kIntegerVectors];
  FOLDKV_UNROLL for (int v = 0; v < kIntegerVectors; ++v) {
    const Int start = (Int)load_words(group.starts + token + v * kLanes);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) sums[r][v] = start;
  }
  const std::byte* basis = p.basis + row * p.basis_stride + kIntegerRowStart + group.first_word * 4;
  const uint32_t* latents = p.latents + group.first_word * kTile + token;
  for (int64_t word = 0; word < group.word_count; ++word, latents += kTile, basis += 4) {
    Word right[kIntegerVectors];
    FOLDKV_UNROLL for (int v = 0; v < kIntegerVectors; ++v) right[v] = load_words(latents + v * kLanes);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
      uint32_t left;
      __builtin_memcpy(&left, basis + r * p.basis_stride, sizeof left);
      FOLDKV_UNROLL for (int v = 0; v < kIntegerVectors; ++v) add_products(sums[r][v], broadcast_word(left), right[v]);
    }
  }
  FOLDKV_UNROLL for (int v = 0; v < kIntegerVectors; ++v) {
    const Float scales = load(group.scales + token + v * kLanes);
    FOLDKV_UNROLL for (int r = 0; r < kRows; ++r) {
      float* output = p.output + (row + r) * kTile + token + v * kLanes;
      const Float before = first ? Float{} : load(output);
      store(output, multiply_add(__builtin_convertvector(sums[r][v], Float), scales, before));
    }
  }
}

template <int kRows>
FOLDKV_INLINE void integer_rows(const IntegerProduct& p, int64_t row) {
  for (int64_t index = 0; index < p.group_count; ++index) {
    for (int64_t token = 0; token < kTile; token += kIntegerVectors * kLanes) {
      integer_block<kRows>(p, p.groups[index], row, token, index == 0);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float scale;
    __builtin_memcpy(&scale, p.basis + (row + r) * p.basis_stride, sizeof scale);
    const Float start = broadcast(p.row_start == nullptr ? 0.0f : p.row_start[row + r]);
    float* output = p.output + (row + r) * kTile;
    for (int64_t token = 0; token < kTile; token += kLanes) {
      store(output + token, multiply_add(load(output + token), broadcast(scale), start));
    }
  }
}

void integer_product(const IntegerProduct& p) {
  int64_t row = 0;
  for (; row + kIntegerRows <= p.rows; row += kIntegerRows) integer_rows<kIntegerRows>(p, row);
  for (; row < p.rows; ++row) integer_rows<1>(p, row);
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
