#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/number_format.h"

// How cache data lies in pages. The runtime computes these layouts; every backend reads and writes exactly them,
// so that bytes mean the same everywhere.
namespace foldkv::backend {

enum class Side : int32_t { kKeys = 0, kValues = 1 };

// One page of the exact region of one layer: keys before rotation (after the key norm), then values.
//
//   keys   [page_tokens][width]   number format
//   values [page_tokens][width]   number format
struct ExactLayout {
  int64_t page_tokens = 0;
  int64_t width = 0;  // kv heads * head size of the layer
  NumberFormat format = NumberFormat::kF16;

  [[nodiscard]] int64_t row_bytes() const { return width * bytes_of(format); }
  [[nodiscard]] int64_t side_offset(Side side) const {
    return side == Side::kKeys ? 0 : page_tokens * row_bytes();
  }
  [[nodiscard]] int64_t page_bytes() const { return 2 * page_tokens * row_bytes(); }
};

enum class Code : int32_t { kUniform = 0, kTrellis = 1 };

// Adjacent latent coordinates of one token that share one scale.
//
// Uniform: a scale in f16. Code of coordinate i: unsigned, bias 2^(bits-1), little-endian bit string: bits [i*bits, (i+1)*bits) counted
// from the least significant bit of the byte at byte_offset. Every scale group starts on a byte; the bits that the one
// before leaves over are zero.
//
// Trellis: a scale of one byte, trellis_scale.h; codes as in trellis.h, each step of `step` coordinates adds `bits` bits.
struct ScaleGroup {
  int32_t first = 0;  // coordinate
  int32_t count = 0;
  int32_t bits = 0;         // uniform: 2 to 8; trellis: of a step
  int32_t byte_offset = 0;  // in the token's row of codes
  Code code = Code::kUniform;
  int32_t step = 1;          // trellis: coordinates of a step
  bool continues = false;    // trellis: the group before is one too and its bits end with a byte
  int32_t scale_offset = 0;  // bytes, in the token's row of scales
  float spread = 1.0f;       // trellis: see trellis_scale.h
};

// Codes and scales of one side of a latent page.
//
//   codes  [page_tokens][code_bytes]            at codes_offset
//   scales [page_tokens][scale_bytes]           at scales_offset
struct LatentPlane {
  int64_t width = 0;         // coordinates of the basis, stored or not
  int64_t stored_width = 0;  // coordinates with a width of bits above 0; they come first
  int64_t code_bytes = 0;    // of one token
  int64_t scale_bytes = 0;   // likewise
  std::vector<ScaleGroup> scale_groups;
  int64_t codes_offset = 0;
  int64_t scales_offset = 0;

  // Coordinates of trellis groups.
  [[nodiscard]] int64_t trellis_width() const {
    int64_t sum = 0;
    for (const ScaleGroup& group : scale_groups) sum += group.code == Code::kTrellis ? group.count : 0;
    return sum;
  }
  // The groups from `first` on that share one bit string: a trellis group and those that continue it.
  [[nodiscard]] std::span<const ScaleGroup> trellis_run(size_t first) const {
    size_t end = first + 1;
    while (end < scale_groups.size() && scale_groups[end].continues) ++end;
    return {scale_groups.data() + first, end - first};
  }
};

// One page of a layer group:  key codes | key scales | value codes | value scales | correction coefficients
//   coefficients [page_tokens][correction_rank]  f16, at coefficients_offset
// Each part starts at a multiple of 64 bytes.
struct LatentLayout {
  int64_t page_tokens = 0;
  LatentPlane keys;
  LatentPlane values;
  int64_t correction_rank = 0;
  int64_t coefficients_offset = 0;
  int64_t page_bytes = 0;

  [[nodiscard]] const LatentPlane& plane(Side side) const { return side == Side::kKeys ? keys : values; }
};

// Tokens of one layer in exact pages: slot s is row s % page_tokens of pages[s / page_tokens].
struct ExactRegion {
  std::byte* const* pages = nullptr;  // host array of device pointers
  int64_t token_count = 0;
};

// Tokens of one layer group in latent pages, addressed likewise.
struct LatentRegion {
  std::byte* const* pages = nullptr;
  int64_t token_count = 0;
  // Of the sequence; layer-major stacked vectors [layers * key width], f16.
  const uint16_t* key_mean = nullptr;    // null: zero
  const uint16_t* value_mean = nullptr;  // null: zero
  const uint16_t* correction_basis = nullptr;  // [layers * key width][correction_rank], f16; null: none
};

// Positions of the tokens of a region, in pages of page_tokens int32 numbers, addressed like the tokens.
struct PositionRegion {
  std::byte* const* pages = nullptr;
  int64_t page_tokens = 0;
};

}  // namespace foldkv::backend
