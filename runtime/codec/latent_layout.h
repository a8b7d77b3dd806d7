#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/interface/layout.h"
#include "runtime/codec/band.h"

namespace foldkv {

// Tokens of one latent page. 64 rows of any width keep every part of a page on a cache line.
inline constexpr int64_t kLatentPageTokens = 64;

// How heads of two layers are merged (MiniCache); no heads: they are not.
struct MergeRules {
  int32_t heads = 0;
  int32_t head_size = 0;
  int32_t retained = 0;  // tokens of a page and head that are kept as they were
  float interpolation = 0.0f;

  bool operator==(const MergeRules&) const = default;
};

// How one side of the latents of a layer group is stored.
struct SideFormat {
  std::vector<Band> bands;
  int64_t latent_width = 0;          // of the basis; coordinates beyond the bands are not stored
  std::span<const double> variances;  // of the coordinates, or none: trellis scales are relative to their roots
};

// Codes and scales of one token and side; offsets within the page are left at zero. Scale groups are runs of
// scale_group coordinates inside each band, the last of a band may be shorter.
[[nodiscard]] backend::LatentPlane latent_plane(const SideFormat& format, int64_t scale_group);

// How the latents of a layer group are stored.
struct LatentFormat {
  SideFormat keys;
  SideFormat values;
  int64_t scale_group = 0;
  int64_t correction_rank = 0;
  MergeRules merge;  // of both sides
};

// The page of a layer group.
[[nodiscard]] backend::LatentLayout latent_layout(const LatentFormat& format);

// Codes, scales and correction coefficients of one token; what belongs to several tokens is shared out, rounded up.
[[nodiscard]] int64_t latent_token_bytes(const backend::LatentLayout& layout);

}  // namespace foldkv
