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

// latent [plane.stored_width].
void read_latent(const LatentPlane& plane, const std::byte* page, int64_t row, double* latent);

// Quantizes latent [plane.stored_width] into its page; codes [plane.stored_width] and trellis are scratch. Numeric error as quantize_group.
[[nodiscard]] Status write_latent(const LatentPlane& plane, std::byte* page, int64_t row, const float* latent,
                                  int32_t* codes, const TrellisArrays& trellis);

}  // namespace foldkv::backend::reference
