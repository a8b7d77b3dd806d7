#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/interface/layout.h"
#include "backends/reference/trellis.h"
#include "runtime/base/status.h"

// One token of one latent plane, in its page.
namespace foldkv::backend::reference {

// Code of coordinate `index` of a scale group that starts at `group`, with its bias; see ScaleGroup.
[[nodiscard]] uint32_t read_code(const std::byte* group, int64_t index, int32_t bits);

// latent [plane.stored_width]; of a merged plane the row of one of its layers.
void read_latent(const LatentPlane& plane, const std::byte* page, int64_t row, double* latent, int64_t layer = 0);

// Quantizes latent [plane.stored_width] into its page, but for channel groups; codes [plane.stored_width] and trellis
// are scratch. Numeric error as quantize_group.
[[nodiscard]] Status write_latent(const LatentPlane& plane, std::byte* page, int64_t row, const float* latent,
                                  int32_t* codes, const TrellisArrays& trellis);

// The channel groups of a block of kChannelTokens tokens, from row `row` of the page on: latents
// [kChannelTokens][plane.stored_width]. Numeric error for what is not finite or beyond f16.
[[nodiscard]] Status write_channels(const LatentPlane& plane, std::byte* page, int64_t row, const float* latents);

}  // namespace foldkv::backend::reference
