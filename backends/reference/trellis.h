#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/interface/layout.h"
#include "runtime/base/status.h"

// The trellis code of one token, see backends/interface/trellis.h.
namespace foldkv::backend::reference {

// The groups of a plane from `first` on that share one bit string: a trellis group and those that continue it.
[[nodiscard]] std::span<const ScaleGroup> trellis_run(const LatentPlane& plane, size_t first);

// Quantizes the run's coordinates of latent [plane.stored_width] into the token's rows of codes and scales.
// Numeric error when a number is not finite or a scale beyond its grid.
[[nodiscard]] Status encode_trellis(std::span<const ScaleGroup> run, const float* latent, std::byte* codes,
                                    std::byte* scales);

// latent [plane.stored_width]: the coordinates of one group.
void decode_trellis(const ScaleGroup& group, const std::byte* codes, const std::byte* scales, double* latent);

}  // namespace foldkv::backend::reference
