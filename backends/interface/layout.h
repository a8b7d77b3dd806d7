#pragma once

#include <algorithm>
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

enum class Code : int32_t { kUniform = 0, kTrellis = 1, kHalf = 2, kAsymmetric = 3, kChannel = 4 };

// Tokens that share a scale under Code::kChannel; runs of such latents begin and end at multiples of it.
inline constexpr int64_t kChannelTokens = 32;

// Adjacent latent coordinates of one token that share one scale.
//
// Uniform: a scale in f16. Code of coordinate i: unsigned, bias 2^(bits-1), little-endian bit string: bits
// [i*bits, (i+1)*bits) counted from the least significant bit of the byte at byte_offset. Every scale group starts on a
// byte; the bits that the one before leaves over are zero.
//
// Trellis: a scale of one byte, trellis_scale.h; codes as in trellis.h, each step of `step` coordinates adds `bits` bits.
//
// Half: 16 bits, the coordinate in f16; no scale. All of a plane or none of it.
//
// Asymmetric: codes as uniform ones; a scale and the smallest number, both f16 (asymmetric.h).
//
// Channel: likewise, but the scale and the smallest number are those of one coordinate over kChannelTokens tokens:
// pairs of f16 for each coordinate of the group at scale_offset in the row of channel scales of the tokens' block.
struct ScaleGroup {
  int32_t first = 0;  // coordinate
  int32_t count = 0;
  int32_t bits = 0;         // uniform, asymmetric, channel: 2 to 8; trellis: of a step; half: 16
  int32_t byte_offset = 0;  // in the token's row of codes
  Code code = Code::kUniform;
  int32_t step = 1;          // trellis: coordinates of a step
  bool continues = false;    // trellis: the group before is one too and its bits end with a byte
  int32_t scale_offset = 0;  // bytes, in the token's row of scales; channel: in the block's
  float spread = 1.0f;       // trellis: see trellis_scale.h
};

// Heads of neighbouring layers that share a direction (MiniCache). The latent is the direction, a row of one layer's
// width in f16; the rows of layer l are norm * direction, head by head, but those of the retained tokens, which a page
// keeps as they were.
struct MergedHeads {
  int32_t layers = 0;    // 2, or 0: the plane is not merged
  int32_t heads = 0;
  int32_t head_size = 0;
  int32_t retained = 0;  // tokens of a page and head
  float interpolation = 0.0f;  // 0: the direction of the first layer, 1: of the second
  int64_t norms_offset = 0;  // [page_tokens][layers][heads] f16
  int64_t slots_offset = 0;  // [heads][retained] one byte each: slots in the page
  int64_t rows_offset = 0;   // [heads][retained][layers][head_size] f16
};

// Codes and scales of one side of a latent page.
//
//   codes  [page_tokens][code_bytes]                           at codes_offset
//   scales [page_tokens][scale_bytes]                          at scales_offset
//   channel scales [page_tokens / kChannelTokens][channel_bytes]  at channels_offset
struct LatentPlane {
  int64_t width = 0;         // coordinates of the basis, stored or not
  int64_t stored_width = 0;  // coordinates with a width of bits above 0; they come first
  int64_t code_bytes = 0;    // of one token
  int64_t scale_bytes = 0;   // likewise
  std::vector<ScaleGroup> scale_groups;
  int64_t codes_offset = 0;
  int64_t scales_offset = 0;
  int64_t channel_bytes = 0;  // of one block of tokens; 0: no channel groups
  int64_t channels_offset = 0;
  MergedHeads merged;

  // All coordinates are halves, so that a row of codes is a row of numbers.
  [[nodiscard]] bool halves() const { return !scale_groups.empty() && scale_groups[0].code == Code::kHalf; }
  // Where a number of the stacked vector lies in the decoded latent when there is no basis.
  [[nodiscard]] int64_t coordinate_of(int64_t row) const { return merged.layers > 0 ? row % width : row; }
  // Encoded runs begin and end at multiples of so many tokens.
  [[nodiscard]] int64_t run_tokens(int64_t page_tokens) const {
    return merged.layers > 0 ? page_tokens : channel_bytes > 0 ? kChannelTokens : 1;
  }
  // Where the channel scales of a group lie in a page, of the block that the token in this row belongs to.
  [[nodiscard]] int64_t channels_of(const ScaleGroup& group, int64_t row) const {
    return channels_offset + row / kChannelTokens * channel_bytes + group.scale_offset;
  }
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

// One page of a layer group:  keys | values | correction coefficients, where a side is
//   codes | scales | channel scales | norms | retained slots | retained rows
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
  [[nodiscard]] int64_t run_tokens() const {
    return std::max(keys.run_tokens(page_tokens), values.run_tokens(page_tokens));
  }
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
