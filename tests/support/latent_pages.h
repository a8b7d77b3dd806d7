#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/interface/layout.h"
#include "tests/support/number_io.h"
#include "tests/support/page_pool.h"
#include "tests/support/random.h"

namespace foldkv::test {

struct LatentBand {
  int64_t width = 0;
  int32_t bits = 0;  // 0: not stored
};

// Layouts made here and not by the runtime: a second reading of layout.h.
[[nodiscard]] inline backend::LatentPlane make_plane(const std::vector<LatentBand>& bands, int64_t scale_group) {
  backend::LatentPlane plane;
  for (const LatentBand& band : bands) {
    for (int64_t first = 0; first < band.width && band.bits > 0; first += scale_group) {
      const int64_t count = std::min(scale_group, band.width - first);
      plane.scale_groups.push_back({static_cast<int32_t>(plane.width + first), static_cast<int32_t>(count), band.bits,
                                    static_cast<int32_t>(plane.code_bytes)});
      plane.scale_groups.back().scale_offset = static_cast<int32_t>(plane.scale_bytes);
      plane.scale_bytes += 2;
      plane.code_bytes += divide_up(count * band.bits, 8);
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
    const backend::LatentPlane& plane = layout_.plane(side);
    return reinterpret_cast<uint16_t*>(pool_.page_of(slot) + plane.scales_offset) +
           pool_.row_of(slot) * static_cast<int64_t>(plane.scale_groups.size());
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
    int64_t index = 0;
    for (const backend::ScaleGroup& group : plane.scale_groups) {
      const int32_t limit = (1 << (group.bits - 1)) - 1;
      const double scale = magnitude * random.uniform(0.5, 2.0) / limit;
      scales(side, slot)[index++] = f16_from_f32(static_cast<float>(scale));
      for (int32_t i = 0; i < group.count; ++i) {
        put_code(side, slot, group, i, static_cast<int32_t>(random.between(-limit, limit)));
      }
    }
  }

  backend::LatentLayout layout_;
  PagePool pool_;
};

}  // namespace foldkv::test
