#include "runtime/codec/latent_layout.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace foldkv {
namespace {

constexpr int64_t kPartAlignment = 64;
constexpr int64_t kScaleBytes = 2;
constexpr int64_t kCoefficientBytes = 2;

void place_plane(backend::LatentPlane& plane, int64_t page_tokens, int64_t& offset) {
  plane.codes_offset = offset;
  offset = round_up(offset + page_tokens * plane.code_bytes, kPartAlignment);
  plane.scales_offset = offset;
  offset = round_up(offset + page_tokens * static_cast<int64_t>(plane.scale_groups.size()) * kScaleBytes,
                    kPartAlignment);
}

int64_t plane_token_bytes(const backend::LatentPlane& plane) {
  return plane.code_bytes + static_cast<int64_t>(plane.scale_groups.size()) * kScaleBytes;
}

}  // namespace

backend::LatentPlane latent_plane(const std::vector<Band>& bands, int64_t latent_width, int64_t scale_group) {
  backend::LatentPlane plane;
  int64_t first = 0;
  for (const Band& band : bands) {
    for (int64_t done = 0; done < band.width && band.bits > 0; done += scale_group) {
      const int64_t count = std::min<int64_t>(scale_group, band.width - done);
      plane.scale_groups.push_back({static_cast<int32_t>(first + done), static_cast<int32_t>(count), band.bits,
                                    static_cast<int32_t>(plane.code_bytes)});
      plane.code_bytes += divide_up(count * band.bits, 8);
    }
    first += band.width;
    if (band.bits > 0) plane.stored_width = first;
  }
  plane.width = latent_width;
  return plane;
}

backend::LatentLayout latent_layout(const LatentFormat& format) {
  backend::LatentLayout layout;
  layout.page_tokens = kLatentPageTokens;
  layout.keys = latent_plane(format.key_bands, format.key_latent_width, format.scale_group);
  layout.values = latent_plane(format.value_bands, format.value_latent_width, format.scale_group);
  layout.correction_rank = format.correction_rank;
  int64_t offset = 0;
  place_plane(layout.keys, layout.page_tokens, offset);
  place_plane(layout.values, layout.page_tokens, offset);
  layout.coefficients_offset = offset;
  offset += layout.page_tokens * layout.correction_rank * kCoefficientBytes;
  layout.page_bytes = round_up(offset, kPartAlignment);
  return layout;
}

int64_t latent_token_bytes(const backend::LatentLayout& layout) {
  return plane_token_bytes(layout.keys) + plane_token_bytes(layout.values) +
         layout.correction_rank * kCoefficientBytes;
}

}  // namespace foldkv
