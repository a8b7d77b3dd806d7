#pragma once

#include <cstdint>
#include <vector>

#include "backends/interface/layout.h"
#include "runtime/codec/band.h"

namespace foldkv {

// Tokens of one latent page. 64 rows of any width keep every part of a page on a cache line.
inline constexpr int64_t kLatentPageTokens = 64;

// Codes and scales of one token and side; offsets within the page are left at zero. Scale groups are runs of
// scale_group coordinates inside each band, the last of a band may be shorter. Coordinates of the basis (latent_width)
// beyond the bands are not stored.
[[nodiscard]] backend::LatentPlane latent_plane(const std::vector<Band>& bands, int64_t latent_width,
                                                int64_t scale_group);

// How the latents of a layer group are stored.
struct LatentFormat {
  std::vector<Band> key_bands;
  int64_t key_latent_width = 0;
  std::vector<Band> value_bands;
  int64_t value_latent_width = 0;
  int64_t scale_group = 0;
  int64_t correction_rank = 0;
};

// The page of a layer group.
[[nodiscard]] backend::LatentLayout latent_layout(const LatentFormat& format);

// Codes, scales and correction coefficients of one token.
[[nodiscard]] int64_t latent_token_bytes(const backend::LatentLayout& layout);

}  // namespace foldkv
