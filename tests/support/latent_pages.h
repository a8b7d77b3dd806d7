#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/interface/layout.h"
#include "backends/interface/trellis.h"
#include "backends/interface/trellis_scale.h"
#include "tests/support/number_io.h"
#include "tests/support/page_pool.h"
#include "tests/support/random.h"

namespace foldkv::test {

struct LatentBand {
  int64_t width = 0;
  int32_t bits = 0;  // 0: not stored
  int32_t step = 0;  // 0: uniform; else a trellis whose steps have so many coordinates

  [[nodiscard]] int64_t code_bits(int64_t count) const { return step == 0 ? count * bits : divide_up(count, step) * bits; }
};

// Every rate that a trellis has.
[[nodiscard]] inline std::vector<LatentBand> trellis_bands(int64_t width) {
  return {{width, 1, 2}, {width, 1, 1}, {width, 3, 2}, {width, 2, 1}, {width, 3, 1}, {width, 4, 1}};
}

// Layouts made here and not by the runtime: a second reading of layout.h.
[[nodiscard]] inline backend::LatentPlane make_plane(const std::vector<LatentBand>& bands, int64_t scale_group) {
  backend::LatentPlane plane;
  bool on_a_byte_after_trellis = false;
  for (const LatentBand& band : bands) {
    for (int64_t first = 0; first < band.width && band.bits > 0; first += scale_group) {
      const int64_t count = std::min(scale_group, band.width - first);
      plane.scale_groups.push_back({static_cast<int32_t>(plane.width + first), static_cast<int32_t>(count), band.bits,
                                    static_cast<int32_t>(plane.code_bytes)});
      backend::ScaleGroup& group = plane.scale_groups.back();
      group.scale_offset = static_cast<int32_t>(plane.scale_bytes);
      if (band.step > 0) {
        group.code = backend::Code::kTrellis;
        group.step = band.step;
        group.continues = on_a_byte_after_trellis;
        group.spread = 0.5f + 0.125f * static_cast<float>(plane.scale_groups.size());
      }
      plane.scale_bytes += band.step > 0 ? 1 : 2;
      plane.code_bytes += divide_up(band.code_bits(count), 8);
      on_a_byte_after_trellis = band.step > 0 && count % band.step == 0 && band.code_bits(count) % 8 == 0;
    }
    plane.width += band.width;
    if (band.bits > 0) plane.stored_width = plane.width;
  }
  return plane;
}

[[nodiscard]] inline backend::LatentLayout make_layout(const backend::LatentPlane& keys,
                                                       const backend::LatentPlane& values, int64_t correction_rank,
                                                       int64_t page_tokens) {
  backend::LatentLayout layout{page_tokens, keys, values, correction_rank, 0, 0};
  int64_t place = 0;
  for (backend::LatentPlane* plane : {&layout.keys, &layout.values}) {
    plane->codes_offset = place;
    plane->scales_offset = round_up(place + page_tokens * plane->code_bytes, 64);
    place = round_up(plane->scales_offset + page_tokens * plane->scale_bytes, 64);
  }
  layout.coefficients_offset = place;
  layout.page_bytes = round_up(place + page_tokens * 2 * correction_rank, 64);
  return layout;
}

// The latent pages of one group of one sequence.
class LatentPages {
 public:
  LatentPages(const backend::LatentLayout& layout, int64_t tokens, std::byte fill)
      : layout_(layout), pool_(tokens, layout.page_tokens, layout.page_bytes, fill) {}

  [[nodiscard]] const backend::LatentLayout& layout() const { return layout_; }
  [[nodiscard]] const PagePool& pool() const { return pool_; }

  [[nodiscard]] uint16_t* scales(backend::Side side, int64_t slot) const {
    return reinterpret_cast<uint16_t*>(scale_bytes(side, slot));
  }
  [[nodiscard]] std::byte* scale_bytes(backend::Side side, int64_t slot) const {
    const backend::LatentPlane& plane = layout_.plane(side);
    return pool_.page_of(slot) + plane.scales_offset + pool_.row_of(slot) * plane.scale_bytes;
  }
  [[nodiscard]] std::byte* codes(backend::Side side, int64_t slot) const {
    const backend::LatentPlane& plane = layout_.plane(side);
    return pool_.page_of(slot) + plane.codes_offset + pool_.row_of(slot) * plane.code_bytes;
  }
  [[nodiscard]] uint16_t* coefficients(int64_t slot) const {
    return reinterpret_cast<uint16_t*>(pool_.page_of(slot) + layout_.coefficients_offset) +
           pool_.row_of(slot) * layout_.correction_rank;
  }

  // Bit by bit, as layout.h tells it.
  [[nodiscard]] int32_t code(backend::Side side, int64_t slot, const backend::ScaleGroup& group, int32_t index) const {
    const std::byte* const bytes = codes(side, slot) + group.byte_offset;
    int32_t code = 0;
    for (int32_t bit = 0; bit < group.bits; ++bit) {
      const int32_t place = index * group.bits + bit;
      const bool set = ((bytes[place / 8] >> (place % 8)) & std::byte{1}) != std::byte{0};
      if (set) code += 1 << bit;
    }
    return code - (1 << (group.bits - 1));
  }
  // What a coordinate decodes to, in double precision but for the decoder's own numbers.
  [[nodiscard]] double latent(backend::Side side, int64_t slot, const backend::ScaleGroup& group, int32_t index) const {
    const std::byte* const place = scale_bytes(side, slot) + group.scale_offset;
    if (group.code == backend::Code::kUniform) {
      uint16_t half = 0;
      std::memcpy(&half, place, sizeof half);
      return static_cast<double>(f32_from_f16(half)) * code(side, slot, group, index);
    }
    const auto* const bytes = reinterpret_cast<const uint8_t*>(codes(side, slot)) + group.byte_offset;
    int32_t window = 0;
    for (int32_t i = 0; i < 8; ++i) {  // the last eight bits up to the end of the step
      const int32_t bit = (index / group.step + 1) * group.bits - 8 + i;
      const bool readable = bit >= 0 || group.continues;
      const int32_t byte = bit >= 0 ? bit / 8 : -1;
      if (readable && (bytes[byte] >> ((bit + 8) % 8) & 1) != 0) window |= 1 << i;
    }
    const backend::TrellisRate& rate = *backend::find_trellis_rate(group.bits, group.step);
    const float scale = backend::trellis_scale(std::to_integer<uint8_t>(*place), group.spread);
    return static_cast<double>(backend::trellis_value(rate, index % group.step, window) * scale);
  }
  void put_code(backend::Side side, int64_t slot, const backend::ScaleGroup& group, int32_t index, int32_t code) const {
    std::byte* const bytes = codes(side, slot) + group.byte_offset;
    const int32_t biased = code + (1 << (group.bits - 1));
    for (int32_t bit = 0; bit < group.bits; ++bit) {
      const int32_t place = index * group.bits + bit;
      const std::byte mask = std::byte{1} << (place % 8);
      bytes[place / 8] = (biased >> bit & 1) != 0 ? bytes[place / 8] | mask : bytes[place / 8] & ~mask;
    }
  }

  // Random codes, scales that make latents of about `magnitude`, random coefficients.
  void randomize(Random& random, int64_t first, int64_t count, double magnitude) const {
    for (int64_t slot = first; slot < first + count; ++slot) {
      for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
        randomize_side(random, side, slot, magnitude);
      }
      for (int64_t j = 0; j < layout_.correction_rank; ++j) {
        coefficients(slot)[j] = f16_from_f32(static_cast<float>(0.3 * magnitude * random.normal()));
      }
    }
  }

 private:
  void randomize_side(Random& random, backend::Side side, int64_t slot, double magnitude) const {
    const backend::LatentPlane& plane = layout_.plane(side);
    std::memset(codes(side, slot), 0, static_cast<size_t>(plane.code_bytes));
    for (const backend::ScaleGroup& group : plane.scale_groups) {
      if (group.code == backend::Code::kTrellis) {
        randomize_trellis(random, side, slot, group);
        continue;
      }
      const int32_t limit = (1 << (group.bits - 1)) - 1;
      const double scale = magnitude * random.uniform(0.5, 2.0) / limit;
      const uint16_t half = f16_from_f32(static_cast<float>(scale));
      std::memcpy(scale_bytes(side, slot) + group.scale_offset, &half, sizeof half);
      for (int32_t i = 0; i < group.count; ++i) {
        put_code(side, slot, group, i, static_cast<int32_t>(random.between(-limit, limit)));
      }
    }
  }

  void randomize_trellis(Random& random, backend::Side side, int64_t slot, const backend::ScaleGroup& group) const {
    scale_bytes(side, slot)[group.scale_offset] = static_cast<std::byte>(random.chance(0.1) ? 0 : random.between(120, 136));
    const int64_t bits = divide_up(group.count, group.step) * group.bits;
    for (int64_t bit = 0; bit < bits; ++bit) {
      if (random.chance(0.5)) codes(side, slot)[group.byte_offset + bit / 8] |= std::byte{1} << (bit % 8);
    }
  }

  backend::LatentLayout layout_;
  PagePool pool_;
};

}  // namespace foldkv::test
