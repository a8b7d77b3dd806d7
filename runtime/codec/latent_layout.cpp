#include "runtime/codec/latent_layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "runtime/base/checked.h"

namespace foldkv {
namespace {

constexpr int64_t kPartAlignment = 64;
constexpr int64_t kHalfBytes = 2;
constexpr int32_t kMergedLayers = 2;

// The bytes of a page's parts, in the order in which they lie; see LatentLayout.
struct PlaneParts {
  int64_t codes, scales, channels, norms, retained_slots, retained_rows;

  [[nodiscard]] int64_t total() const {
    return codes + scales + channels + norms + retained_slots + retained_rows;
  }
};

PlaneParts parts_of(const backend::LatentPlane& plane, int64_t page_tokens) {
  const backend::MergedHeads& merged = plane.merged;
  const int64_t retained = int64_t{merged.heads} * merged.retained;
  return {page_tokens * plane.code_bytes,
          page_tokens * plane.scale_bytes,
          divide_up(page_tokens, backend::kChannelTokens) * plane.channel_bytes,
          page_tokens * merged.layers * merged.heads * kHalfBytes,
          retained,
          retained * merged.layers * merged.head_size * kHalfBytes};
}

void place_plane(backend::LatentPlane& plane, int64_t page_tokens, int64_t& offset) {
  const PlaneParts parts = parts_of(plane, page_tokens);
  const auto place = [&](int64_t bytes) {
    const int64_t start = offset;
    offset = round_up(offset + bytes, kPartAlignment);
    return start;
  };
  plane.codes_offset = place(parts.codes);
  plane.scales_offset = place(parts.scales);
  plane.channels_offset = place(parts.channels);
  plane.merged.norms_offset = place(parts.norms);
  plane.merged.slots_offset = place(parts.retained_slots);
  plane.merged.rows_offset = place(parts.retained_rows);
}

int64_t scale_bytes_of(backend::Code code) {
  switch (code) {
    case backend::Code::kUniform: return kHalfBytes;
    case backend::Code::kTrellis: return 1;
    case backend::Code::kAsymmetric: return 2 * kHalfBytes;
    case backend::Code::kHalf:
    case backend::Code::kChannel: break;
  }
  return 0;
}

backend::MergedHeads merged_heads(const MergeRules& rules) {
  backend::MergedHeads merged;
  if (rules.heads == 0) return merged;
  merged.layers = kMergedLayers;
  merged.heads = rules.heads;
  merged.head_size = rules.head_size;
  merged.retained = rules.retained;
  merged.interpolation = rules.interpolation;
  return merged;
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
  if (band.code == backend::Code::kChannel) {
    group.scale_offset = static_cast<int32_t>(plane.channel_bytes);
    plane.channel_bytes += count * 2 * kHalfBytes;
  }
  plane.scale_groups.push_back(group);
  plane.code_bytes += divide_up(divide_up(count, band.step) * band.bits, 8);
  plane.scale_bytes += scale_bytes_of(band.code);
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
  layout.keys.merged = merged_heads(format.merge);
  layout.values.merged = layout.keys.merged;
  layout.correction_rank = format.correction_rank;
  int64_t offset = 0;
  place_plane(layout.keys, layout.page_tokens, offset);
  place_plane(layout.values, layout.page_tokens, offset);
  layout.coefficients_offset = offset;
  offset += layout.page_tokens * layout.correction_rank * kHalfBytes;
  layout.page_bytes = round_up(offset, kPartAlignment);
  return layout;
}

int64_t latent_token_bytes(const backend::LatentLayout& layout) {
  const int64_t page = parts_of(layout.keys, layout.page_tokens).total() +
                       parts_of(layout.values, layout.page_tokens).total();
  return divide_up(page, layout.page_tokens) + layout.correction_rank * kHalfBytes;
}

}  // namespace foldkv
