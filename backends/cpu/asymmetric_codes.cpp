#include "backends/cpu/asymmetric_codes.h"

#include <algorithm>

#include "backends/cpu/region.h"
#include "backends/interface/asymmetric.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

// The bit string was zero.
void put_code(uint8_t* codes, int64_t index, int32_t bits, uint8_t code) {
  const int64_t place = index * bits;
  const uint32_t wide = uint32_t{code} << (place % 8);
  codes[place / 8] |= static_cast<uint8_t>(wide);
  if (place % 8 + bits > 8) codes[place / 8 + 1] |= static_cast<uint8_t>(wide >> 8);
}

}  // namespace

bool quantize_asymmetric(const ScaleGroup& group, const float* latents, const TokenBytes& bytes) {
  AsymmetricRange range;
  if (!asymmetric_range(latents + group.first, group.count, 1, group.bits, range)) return false;
  store_range(range, reinterpret_cast<std::byte*>(bytes.scales) + group.scale_offset);
  uint8_t* const codes = bytes.codes + group.byte_offset;
  std::fill_n(codes, divide_up(int64_t{group.count} * group.bits, 8), uint8_t{0});
  for (int32_t i = 0; i < group.count; ++i) {
    put_code(codes, i, group.bits, asymmetric_code(latents[group.first + i], range, group.bits));
  }
  return true;
}

bool quantize_channels(const LatentLayout& layout, const LatentPlane& plane, const ScaleGroup& group,
                       std::byte* const* pages, int64_t slot, const LatentRows& latents) {
  std::byte* const page = latent_page(pages, layout, slot);
  const int64_t row = slot % layout.page_tokens;
  auto* const codes =
      reinterpret_cast<uint8_t*>(page + plane.codes_offset + row * plane.code_bytes) + group.byte_offset;
  std::byte* const ranges = page + plane.channels_of(group, row);
  for (int64_t t = 0; t < kChannelTokens; ++t) {
    std::fill_n(codes + t * plane.code_bytes, divide_up(int64_t{group.count} * group.bits, 8), uint8_t{0});
  }
  for (int32_t i = 0; i < group.count; ++i) {
    const float* const channel = latents.numbers + group.first + i;
    AsymmetricRange range;
    if (!asymmetric_range(channel, kChannelTokens, latents.stride, group.bits, range)) return false;
    store_range(range, ranges + i * kAsymmetricRangeBytes);
    for (int64_t t = 0; t < kChannelTokens; ++t) {
      put_code(codes + t * plane.code_bytes, i, group.bits,
               asymmetric_code(channel[t * latents.stride], range, group.bits));
    }
  }
  return true;
}

}  // namespace foldkv::backend::cpu
