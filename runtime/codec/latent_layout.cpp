#include "runtime/codec/latent_layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "runtime/base/checked.h"

namespace foldkv {
namespace {

constexpr int64_t kPartAlignment = 64;
constexpr int64_t kCoefficientBytes = 2;

void place_plane(backend::LatentPlane& plane, int64_t page_tokens, int64_t& offset) {
  plane.codes_offset = offset;
  offset = round_up(offset + page_tokens * plane.code_bytes, kPartAlignment);
  plane.scales_offset = offset;
  offset = round_up(offset + page_tokens * plane.scale_bytes, kPartAlignment);
}

// The root of the mean variance of coordinates [first, first + count); 1 when they have none.
float spread_of(std::span<const double> variances, int64_t first, int64_t count) {
  double sum = 0.0;
  for (int64_t i = first; i < first + count && i < std::ssize(variances); ++i) sum += variances[static_cast<size_t>(i)];
  const auto spread = static_cast<float>(std::sqrt(sum / static_cast<double>(count)));
  return std::isnormal(spread) ? spread : 1.0f;
}

bool ends_with_a_byte(const backend::ScaleGroup& group) {
  return group.count % group.step == 0 && group.count / group.step * group.bits % 8 == 0;
}

void add_scale_group(backend::LatentPlane& plane, const Band& band, const SideFormat& format, int64_t first,
                     int64_t count) {
  backend::ScaleGroup group;
  group.first = static_cast<int32_t>(first);
  group.count = static_cast<int32_t>(count);
  group.bits = band.bits;
  group.byte_offset = static_cast<int32_t>(plane.code_bytes);
  group.code = band.code;
  group.step = band.step;
  group.scale_offset = static_cast<int32_t>(plane.scale_bytes);
  if (band.code == backend::Code::kTrellis) {
    const bool after_trellis =
        !plane.scale_groups.empty() && plane.scale_groups.back().code == backend::Code::kTrellis;
    group.continues = after_trellis && ends_with_a_byte(plane.scale_groups.back());
    group.spread = spread_of(format.variances, first, count);
  }
  plane.scale_groups.push_back(group);
  plane.code_bytes += divide_up(divide_up(count, band.step) * band.bits, 8);
  plane.scale_bytes += band.code == backend::Code::kTrellis ? 1 : 2;
}

}  // namespace

backend::LatentPlane latent_plane(const SideFormat& format, int64_t scale_group) {
  backend::LatentPlane plane;
  int64_t first = 0;
  for (const Band& band : format.bands) {
    for (int64_t done = 0; done < band.width && band.bits > 0; done += scale_group) {
      add_scale_group(plane, band, format, first + done, std::min<int64_t>(scale_group, band.width - done));
    }
    first += band.width;
    if (band.bits > 0) plane.stored_width = first;
  }
  plane.width = format.latent_width;
  return plane;
}

backend::LatentLayout latent_layout(const LatentFormat& format) {
  backend::LatentLayout layout;
  layout.page_tokens = kLatentPageTokens;
  layout.keys = latent_plane(format.keys, format.scale_group);
  layout.values = latent_plane(format.values, format.scale_group);
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
  const auto bytes = [](const backend::LatentPlane& plane) { return plane.code_bytes + plane.scale_bytes; };
  return bytes(layout.keys) + bytes(layout.values) + layout.correction_rank * kCoefficientBytes;
}

}  // namespace foldkv
