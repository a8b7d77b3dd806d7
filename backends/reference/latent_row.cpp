#include "backends/reference/latent_row.h"

#include <algorithm>
#include <cstring>

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

}  // namespace

uint32_t read_code(const std::byte* group, int64_t index, int32_t bits) {
  // A code of up to 8 bits lies in one byte or in two neighbours.
  const int64_t place = index * bits;
  uint32_t window = std::to_integer<uint32_t>(group[place / 8]);
  if (place % 8 + bits > 8) window |= std::to_integer<uint32_t>(group[place / 8 + 1]) << 8;
  return (window >> (place % 8)) & ((1u << bits) - 1u);
}

void read_latent(const LatentPlane& plane, const std::byte* page, int64_t row, double* latent) {
  const std::byte* const codes = page + plane.codes_offset + row * plane.code_bytes;
  const std::byte* const scales = page + plane.scales_offset + row * plane.scale_bytes;
  for (const ScaleGroup& group : plane.scale_groups) {
    if (group.code == Code::kTrellis) {
      decode_trellis(group, codes, scales, latent);
    } else {
      read_uniform(group, codes, scales, latent);
    }
  }
}

Status write_latent(const LatentPlane& plane, std::byte* page, int64_t row, const float* latent, int32_t* codes,
                    const TrellisArrays& trellis) {
  std::byte* const code_row = page + plane.codes_offset + row * plane.code_bytes;
  std::byte* const scale_row = page + plane.scales_offset + row * plane.scale_bytes;
  for (size_t index = 0; index < plane.scale_groups.size();) {
    const ScaleGroup& group = plane.scale_groups[index];
    if (group.code == Code::kTrellis) {
      const std::span<const ScaleGroup> run = plane.trellis_run(index);
      FOLDKV_RETURN_IF_ERROR(encode_trellis(run, latent, trellis, code_row, scale_row));
      index += run.size();
    } else {
      FOLDKV_RETURN_IF_ERROR(write_uniform(group, latent, codes, code_row, scale_row));
      ++index;
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
