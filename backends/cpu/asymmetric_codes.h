#pragma once

#include <cstdint>

#include "backends/cpu/trellis.h"
#include "backends/interface/layout.h"

// Codes with a scale and a smallest number (backends/interface/asymmetric.h), written to their pages. False: a latent is
// not finite, or the range of a group is beyond f16.
namespace foldkv::backend::cpu {

// One token's group: latents [plane width].
[[nodiscard]] bool quantize_asymmetric(const ScaleGroup& group, const float* latents, const TokenBytes& bytes);

struct LatentRows {
  const float* numbers = nullptr;  // [tokens][stride]
  int64_t stride = 0;
};
// One channel group of a block of kChannelTokens tokens, which begins in `slot`.
[[nodiscard]] bool quantize_channels(const LatentLayout& layout, const LatentPlane& plane, const ScaleGroup& group,
                                     std::byte* const* pages, int64_t slot, const LatentRows& latents);

}  // namespace foldkv::backend::cpu
