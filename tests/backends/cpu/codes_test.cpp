#include <algorithm>
#include <cstdlib>
#include <vector>

#include "runtime/base/checked.h"
#include "tests/backends/cpu/instruction_sets.h"
#include "tests/support/latent_pages.h"
#include "tests/support/random.h"

namespace foldkv::backend::cpu {
namespace {

// 64 tokens with one scale group of codes, written bit by bit as layout.h tells it.
struct Tile {
  Tile(test::Random& random, int64_t count, int bits, int64_t byte_offset)
      : row_stride(round_up(byte_offset + divide_up(count * bits, 8), 64) + 64),
        rows(static_cast<size_t>(kTile * row_stride), 0xff),
        codes(static_cast<size_t>(kTile * count)),
        scales(random.normals<float>(kTile)),
        kernel_tile{.rows = rows.data(),
                    .row_stride = row_stride,
                    .byte_offset = byte_offset,
                    .count = count,
                    .bits = bits,
                    .scales = scales.data()} {
    for (int64_t token = 0; token < kTile; ++token) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t code = random.between(0, (1 << bits) - 1);
        codes[static_cast<size_t>(token * count + i)] = static_cast<int>(code);
        for (int bit = 0; bit < bits; ++bit) {
          const int64_t place = i * bits + bit;
          uint8_t& byte = rows[static_cast<size_t>(token * row_stride + byte_offset + place / 8)];
          const auto mask = static_cast<uint8_t>(1 << place % 8);
          byte = static_cast<uint8_t>((code >> bit & 1) != 0 ? byte | mask : byte & ~mask);
        }
      }
    }
  }
  [[nodiscard]] float latent(int64_t token, int64_t i) const {
    const int code = codes[static_cast<size_t>(token * kernel_tile.count + i)] - (1 << (kernel_tile.bits - 1));
    return static_cast<float>(code) * scales[static_cast<size_t>(token)];
  }

  int64_t row_stride;
  std::vector<uint8_t> rows;
  std::vector<int> codes;
  std::vector<float> scales;
  CodeTile kernel_tile;
};

constexpr int64_t kCounts[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 128, 300};

TEST_CASE("codes of every width and count are read as the layout tells it, in lanes and in rows") {
  test::Random random(1);
  for (int bits = 2; bits <= 8; ++bits) {
    for (const int64_t count : kCounts) {
      const Tile tile(random, count, bits, random.between(0, 5));
      CAPTURE(bits);
      CAPTURE(count);
      test::for_each_kernel_set([&](const Kernels& kernels) {
        std::vector<uint32_t> words(static_cast<size_t>(kTile * round_up(divide_up(count, 4), kWidthPadding)));
        std::vector<float> in_lanes(static_cast<size_t>(count * kTile));
        kernels.decode_tile(tile.kernel_tile, words.data(), in_lanes.data());
        constexpr int64_t kLive = 61;
        const int64_t stride = count + 3;
        std::vector<float> in_rows(static_cast<size_t>(kTile * stride), 9.0f);
        kernels.decode_rows(tile.kernel_tile, kLive, in_rows.data(), stride);
        int64_t wrong = 0;
        for (int64_t token = 0; token < kTile; ++token) {
          for (int64_t i = 0; i < stride; ++i) {
            const float in_row = in_rows[static_cast<size_t>(token * stride + i)];
            const bool written = token < kLive && i < count;
            if (in_row != (written ? tile.latent(token, i) : 9.0f)) ++wrong;
            if (i < count && in_lanes[static_cast<size_t>(i * kTile + token)] != tile.latent(token, i)) ++wrong;
          }
        }
        CHECK(wrong == 0);
      });
    }
  }
}

TEST_CASE("codes of every width and count are written as the layout tells it, and nothing beside them") {
  test::Random random(2);
  for (int bits = 2; bits <= 8; ++bits) {
    for (const int64_t count : kCounts) {
      CAPTURE(bits);
      CAPTURE(count);
      const LatentPlane plane = test::make_plane({{count, bits}}, count);
      const test::LatentPages pages(test::make_layout(plane, plane, 0, 1), 1, test::kZero);
      const auto limit = static_cast<int32_t>((1 << (bits - 1)) - 1);
      std::vector<float> latents;
      for (int64_t i = 0; i < count; ++i) latents.push_back(static_cast<float>(random.between(-limit, limit)));
      latents[0] = static_cast<float>(limit);  // a scale of one
      test::for_each_kernel_set([&](const Kernels& kernels) {
        const int64_t bytes = divide_up(count * bits, 8);
        std::vector<uint8_t> written(static_cast<size_t>(bytes) + 2, 0xa5);
        const uint32_t scale = kernels.quantize_group(
            {.latents = latents.data(), .count = count, .bits = bits, .codes = written.data() + 1});
        CHECK(scale == 0x3c00u);
        CHECK(written.front() == 0xa5);
        CHECK(written.back() == 0xa5);
        std::copy_n(reinterpret_cast<const std::byte*>(written.data()) + 1, bytes, pages.codes(Side::kKeys, 0));
        int64_t wrong = 0;
        for (int64_t i = 0; i < count; ++i) {
          const int32_t code = pages.code(Side::kKeys, 0, plane.scale_groups[0], static_cast<int32_t>(i));
          wrong += code != static_cast<int32_t>(latents[static_cast<size_t>(i)]) ? 1 : 0;
        }
        CHECK(wrong == 0);
        const int64_t spare_bits = bytes * 8 - count * bits;
        CHECK((written[static_cast<size_t>(bytes)] >> (8 - spare_bits)) == 0);
      });
    }
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu
