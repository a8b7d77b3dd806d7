#include "runtime/codec/latent_layout.h"

#include "doctest/doctest.h"

namespace foldkv {
namespace {

LatentFormat format_of(const std::vector<Band>& bands, int64_t scale_group, int64_t rank) {
  int64_t width = 0;
  for (const Band& band : bands) width += band.width;
  return {{bands, width, {}}, {bands, width, {}}, scale_group, rank};
}

// methods.md section 13: 4 layers of width 1024 at 4 bits are 1,056 bytes a token, and 1,184 with rank 64.
TEST_CASE("the paper's byte counts come out") {
  CHECK(latent_token_bytes(latent_layout(format_of({{1024, 4}}, 128, 0))) == 1056);
  CHECK(latent_token_bytes(latent_layout(format_of({{1024, 4}}, 128, 64))) == 1184);
}

TEST_CASE("SmolLM2 with 4 layers and 4 bits: 2 x (96 + 2 x 2) bytes") {
  CHECK(latent_token_bytes(latent_layout(format_of({{192, 4}}, 128, 0))) == 200);
}

TEST_CASE("scale groups stay inside bands, the last may be short, what is not stored costs nothing") {
  const backend::LatentPlane plane = latent_plane({{{70, 8}, {33, 3}, {5, 0}}, 128, {}}, 32);
  CHECK(plane.width == 128);
  CHECK(plane.stored_width == 103);
  REQUIRE(plane.scale_groups.size() == 5);
  CHECK(plane.scale_groups[2].first == 64);
  CHECK(plane.scale_groups[2].count == 6);
  CHECK(plane.scale_groups[3].first == 70);
  CHECK(plane.scale_groups[3].byte_offset == 70);
  CHECK(plane.scale_groups[4].count == 1);
  CHECK(plane.scale_groups[4].byte_offset == 82);
  CHECK(plane.code_bytes == 83);
}

TEST_CASE("parts of a page do not overlap and start on cache lines") {
  for (int64_t width : {1, 5, 32, 100, 192}) {
    for (int32_t bits = 2; bits <= 8; ++bits) {
      const backend::LatentLayout layout =
          latent_layout(format_of({{static_cast<int32_t>(width), bits}}, 64, 3));
      const auto scales = [](const backend::LatentPlane& plane) { return std::ssize(plane.scale_groups) * 2; };
      CHECK(layout.keys.codes_offset == 0);
      CHECK(layout.keys.scales_offset >= 64 * layout.keys.code_bytes);
      CHECK(layout.values.codes_offset >= layout.keys.scales_offset + 64 * scales(layout.keys));
      CHECK(layout.values.scales_offset >= layout.values.codes_offset + 64 * layout.values.code_bytes);
      CHECK(layout.coefficients_offset >= layout.values.scales_offset + 64 * scales(layout.values));
      CHECK(layout.page_bytes == layout.coefficients_offset + 64 * 3 * 2);
      for (int64_t offset : {layout.keys.scales_offset, layout.values.codes_offset, layout.values.scales_offset,
                             layout.coefficients_offset, layout.page_bytes}) {
        CHECK(offset % 64 == 0);
      }
      CHECK(layout.page_bytes == 64 * latent_token_bytes(layout));
    }
  }
}

}  // namespace
}  // namespace foldkv
