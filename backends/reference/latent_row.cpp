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

int64_t scales_of(const LatentPlane& plane, int64_t row) {
  return plane.scales_offset + row * static_cast<int64_t>(plane.scale_groups.size() * sizeof(uint16_t));
}

int64_t codes_of(const LatentPlane& plane, int64_t row) { return plane.codes_offset + row * plane.code_bytes; }

}  // namespace

uint32_t read_code(const std::byte* group, int64_t index, int32_t bits) {
  // A code of up to 8 bits lies in one byte or in two neighbours.
  const int64_t place = index * bits;
  uint32_t window = std::to_integer<uint32_t>(group[place / 8]);
  if (place % 8 + bits > 8) window |= std::to_integer<uint32_t>(group[place / 8 + 1]) << 8;
  return (window >> (place % 8)) & ((1u << bits) - 1u);
}

void read_latent(const LatentPlane& plane, const std::byte* page, int64_t row, double* latent) {
  std::fill_n(latent, plane.stored_width, 0.0);
  const std::byte* scale_place = page + scales_of(plane, row);
  for (const ScaleGroup& group : plane.scale_groups) {
    uint16_t scale = 0;
    std::memcpy(&scale, scale_place, sizeof(scale));
    scale_place += sizeof(scale);
    const std::byte* const codes = page + codes_of(plane, row) + group.byte_offset;
    const int32_t bias = 1 << (group.bits - 1);
    for (int32_t i = 0; i < group.count; ++i) {
      const int32_t code = static_cast<int32_t>(read_code(codes, i, group.bits)) - bias;
      latent[group.first + i] = dequantize(code, scale);
    }
  }
}

Status write_latent(const LatentPlane& plane, std::byte* page, int64_t row, const float* latent, int32_t* codes) {
  std::byte* scale_place = page + scales_of(plane, row);
  for (const ScaleGroup& group : plane.scale_groups) {
    FOLDKV_ASSIGN_OR_RETURN(const uint16_t scale, quantize_group(latent + group.first, group.count, group.bits, codes));
    std::memcpy(scale_place, &scale, sizeof(scale));
    scale_place += sizeof(scale);
    std::byte* const bytes = page + codes_of(plane, row) + group.byte_offset;
    std::fill_n(bytes, divide_up(int64_t{group.count} * group.bits, 8), std::byte{0});
    const int32_t bias = 1 << (group.bits - 1);
    for (int32_t i = 0; i < group.count; ++i) {
      write_code(bytes, i, group.bits, static_cast<uint32_t>(codes[i] + bias));
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
