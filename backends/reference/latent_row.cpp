#include "backends/reference/latent_row.h"

#include <algorithm>
#include <cstring>

#include "backends/interface/asymmetric.h"
#include "backends/interface/merged_page.h"
#include "backends/reference/numbers.h"
#include "backends/reference/quantizer.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::reference {
namespace {

// The bytes were zero before.
void write_code(std::byte* group, int64_t index, int32_t bits, uint32_t code) {
  for (int32_t bit = 0; bit < bits; ++bit) {
    const int64_t place = index * bits + bit;
    group[place / 8] |= static_cast<std::byte>(((code >> bit) & 1u) << (place % 8));
  }
}

void read_uniform(const ScaleGroup& group, const std::byte* codes, const std::byte* scales, double* latent) {
  uint16_t scale = 0;
  std::memcpy(&scale, scales + group.scale_offset, sizeof(scale));
  const int32_t bias = 1 << (group.bits - 1);
  for (int32_t i = 0; i < group.count; ++i) {
    const int32_t code = static_cast<int32_t>(read_code(codes + group.byte_offset, i, group.bits)) - bias;
    latent[group.first + i] = dequantize(code, scale);
  }
}

Status write_uniform(const ScaleGroup& group, const float* latent, int32_t* codes, std::byte* code_row,
                     std::byte* scale_row) {
  FOLDKV_ASSIGN_OR_RETURN(const uint16_t scale, quantize_group(latent + group.first, group.count, group.bits, codes));
  std::memcpy(scale_row + group.scale_offset, &scale, sizeof(scale));
  std::byte* const bytes = code_row + group.byte_offset;
  std::fill_n(bytes, divide_up(int64_t{group.count} * group.bits, 8), std::byte{0});
  const int32_t bias = 1 << (group.bits - 1);
  for (int32_t i = 0; i < group.count; ++i) {
    write_code(bytes, i, group.bits, static_cast<uint32_t>(codes[i] + bias));
  }
  return absl::OkStatus();
}

// ranges: of the first coordinate; range_bytes: from one coordinate to the next, 0 when they share one.
void read_ranged(const ScaleGroup& group, const std::byte* codes, const std::byte* ranges, int64_t range_bytes,
                 double* latent) {
  for (int32_t i = 0; i < group.count; ++i) {
    const auto code = static_cast<int32_t>(read_code(codes + group.byte_offset, i, group.bits));
    latent[group.first + i] =
        static_cast<double>(asymmetric_value(code, load_range(ranges + i * range_bytes), group.bits));
  }
}

Status not_representable() { return numeric_error("the latents are not finite, or their range is beyond f16"); }

Status write_asymmetric(const ScaleGroup& group, const float* latent, std::byte* code_row, std::byte* scale_row) {
  AsymmetricRange range;
  if (!asymmetric_range(latent + group.first, group.count, 1, group.bits, range)) return not_representable();
  store_range(range, scale_row + group.scale_offset);
  std::byte* const bytes = code_row + group.byte_offset;
  std::fill_n(bytes, divide_up(int64_t{group.count} * group.bits, 8), std::byte{0});
  for (int32_t i = 0; i < group.count; ++i) {
    write_code(bytes, i, group.bits, asymmetric_code(latent[group.first + i], range, group.bits));
  }
  return absl::OkStatus();
}

Status write_halves(const ScaleGroup& group, const float* latent, std::byte* code_row) {
  for (int32_t i = 0; i < group.count; ++i) {
    const auto number = static_cast<double>(latent[group.first + i]);
    if (!write_number(NumberFormat::kF16, code_row + group.byte_offset, i, number)) return not_representable();
  }
  return absl::OkStatus();
}

void read_halves(const ScaleGroup& group, const std::byte* codes, double* latent) {
  read_numbers(NumberFormat::kF16, codes + group.byte_offset, group.count, latent + group.first);
}

void read_merged(const LatentPlane& plane, const std::byte* page, int64_t row, double* latent, int64_t layer) {
  for (int64_t head = 0; head < plane.merged.heads; ++head) {
    read_merged_head(plane, page, row, layer, head, latent + head * plane.merged.head_size, 1);
  }
}

}  // namespace

uint32_t read_code(const std::byte* group, int64_t index, int32_t bits) {
  // A code of up to 8 bits lies in one byte or in two neighbours.
  const int64_t place = index * bits;
  uint32_t window = std::to_integer<uint32_t>(group[place / 8]);
  if (place % 8 + bits > 8) window |= std::to_integer<uint32_t>(group[place / 8 + 1]) << 8;
  return (window >> (place % 8)) & ((1u << bits) - 1u);
}

void read_latent(const LatentPlane& plane, const std::byte* page, int64_t row, double* latent, int64_t layer) {
  if (plane.merged.layers > 0) {
    read_merged(plane, page, row, latent, layer);
    return;
  }
  const std::byte* const codes = page + plane.codes_offset + row * plane.code_bytes;
  const std::byte* const scales = page + plane.scales_offset + row * plane.scale_bytes;
  for (const ScaleGroup& group : plane.scale_groups) {
    switch (group.code) {
      case Code::kUniform: read_uniform(group, codes, scales, latent); break;
      case Code::kTrellis: decode_trellis(group, codes, scales, latent); break;
      case Code::kHalf: read_halves(group, codes, latent); break;
      case Code::kAsymmetric: read_ranged(group, codes, scales + group.scale_offset, 0, latent); break;
      case Code::kChannel:
        read_ranged(group, codes, page + plane.channels_of(group, row), kAsymmetricRangeBytes, latent);
        break;
    }
  }
}

Status write_latent(const LatentPlane& plane, std::byte* page, int64_t row, const float* latent, int32_t* codes,
                    const TrellisArrays& trellis) {
  std::byte* const code_row = page + plane.codes_offset + row * plane.code_bytes;
  std::byte* const scale_row = page + plane.scales_offset + row * plane.scale_bytes;
  for (size_t index = 0; index < plane.scale_groups.size();) {
    const ScaleGroup& group = plane.scale_groups[index];
    const std::span<const ScaleGroup> run =
        group.code == Code::kTrellis ? plane.trellis_run(index) : std::span(&group, 1);
    switch (group.code) {
      case Code::kUniform:
        FOLDKV_RETURN_IF_ERROR(write_uniform(group, latent, codes, code_row, scale_row));
        break;
      case Code::kTrellis:
        FOLDKV_RETURN_IF_ERROR(encode_trellis(run, latent, trellis, code_row, scale_row));
        break;
      case Code::kHalf: FOLDKV_RETURN_IF_ERROR(write_halves(group, latent, code_row)); break;
      case Code::kAsymmetric:
        FOLDKV_RETURN_IF_ERROR(write_asymmetric(group, latent, code_row, scale_row));
        break;
      case Code::kChannel: break;
    }
    index += run.size();
  }
  return absl::OkStatus();
}

Status write_channels(const LatentPlane& plane, std::byte* page, int64_t row, const float* latents) {
  for (const ScaleGroup& group : plane.scale_groups) {
    if (group.code != Code::kChannel) continue;
    std::byte* const codes = page + plane.codes_offset + row * plane.code_bytes + group.byte_offset;
    for (int64_t t = 0; t < kChannelTokens; ++t) {
      std::fill_n(codes + t * plane.code_bytes, divide_up(int64_t{group.count} * group.bits, 8), std::byte{0});
    }
    std::byte* const ranges = page + plane.channels_of(group, row);
    for (int32_t i = 0; i < group.count; ++i) {
      const float* const channel = latents + group.first + i;
      AsymmetricRange range;
      if (!asymmetric_range(channel, kChannelTokens, plane.stored_width, group.bits, range)) return not_representable();
      store_range(range, ranges + i * kAsymmetricRangeBytes);
      for (int64_t t = 0; t < kChannelTokens; ++t) {
        write_code(codes + t * plane.code_bytes, i, group.bits,
                   asymmetric_code(channel[t * plane.stored_width], range, group.bits));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
