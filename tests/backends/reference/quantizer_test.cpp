#include "backends/reference/quantizer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/reference/latent_row.h"
#include "doctest/doctest.h"
#include "tests/support/latent_pages.h"
#include "tests/support/random.h"

namespace foldkv::backend::reference {
namespace {

using test::LatentPages;

TEST_CASE("field report 12: zero, constant and tiny groups") {
  for (const int32_t bits : {2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(bits);
    const int32_t limit = largest_code(bits);
    std::vector<int32_t> codes(4);
    const std::vector<float> zeros = {0.0f, -0.0f, 0.0f, -0.0f};
    CHECK(quantize_group(zeros.data(), 4, bits, codes.data()).value() == 0);
    CHECK(codes == std::vector<int32_t>{0, 0, 0, 0});
    const std::vector<float> constant(4, 5.0f);
    const uint16_t scale = quantize_group(constant.data(), 4, bits, codes.data()).value();
    CHECK(codes == std::vector<int32_t>(4, limit));
    CHECK(dequantize(limit, scale) == doctest::Approx(5.0).epsilon(1e-3));
    const float tiny = std::numeric_limits<float>::denorm_min();
    const std::vector<float> denormals = {tiny, -tiny, 0.0f, 2.0f * tiny};
    CHECK(quantize_group(denormals.data(), 4, bits, codes.data()).value() == 0);
    CHECK(codes == std::vector<int32_t>{0, 0, 0, 0});
  }
}

TEST_CASE("a step is never missed by more than half, beyond the rounding of the scale") {
  test::Random random(3);
  for (const int32_t bits : {2, 3, 4, 5, 6, 7, 8}) {
    const auto numbers = random.normals<float>(64);
    std::vector<int32_t> codes(64);
    const double step = dequantize(1, quantize_group(numbers.data(), 64, bits, codes.data()).value());
    for (size_t i = 0; i < 64; ++i) {
      const double x = static_cast<double>(numbers[i]);
      const double beyond = std::abs(x) - step * largest_code(bits);  // clamped when positive
      CHECK(std::abs(x - step * codes[i]) <= 0.5 * step + 1e-12);
      CHECK(beyond < 1e-3 * std::abs(x));
    }
  }
}

TEST_CASE("numbers that have no scale are refused") {
  std::vector<int32_t> codes(2);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), 1e30f, 65520.0f * 7.0f}) {
    const std::vector<float> numbers = {1.0f, bad};
    CHECK(quantize_group(numbers.data(), 2, 4, codes.data()).status().code() == absl::StatusCode::kUnknown);
  }
  const std::vector<float> largest = {65519.0f * 7.0f, 0.0f};
  CHECK(quantize_group(largest.data(), 2, 4, codes.data()).value() == 0x7bff);
}

TEST_CASE("codes are little-endian bit strings with a bias") {
  // Three codes of 3 bits, 1 2 7 from the lowest bit on: 001 010 111 -> 11'010'001 and 1.
  const std::byte three[2] = {std::byte{0b11010001}, std::byte{0b00000001}};
  CHECK(read_code(three, 0, 3) == 1);
  CHECK(read_code(three, 1, 3) == 2);
  CHECK(read_code(three, 2, 3) == 7);
  const std::byte four[1] = {std::byte{0xa3}};
  CHECK(read_code(four, 0, 4) == 3);
  CHECK(read_code(four, 1, 4) == 0xa);
  const std::byte eight[2] = {std::byte{0x80}, std::byte{0xfe}};
  CHECK(read_code(eight, 1, 8) == 0xfe);
}

TEST_CASE("a written latent reads back, touches its own row only and leaves spare bits zero") {
  const LatentPlane plane = test::make_plane({{9, 7}, {6, 3}, {4, 2}, {3, 0}}, 5);
  const LatentLayout layout = test::make_layout(plane, plane, 0, 3);
  test::Random random(4);
  for (const Side side : {Side::kKeys, Side::kValues}) {
    LatentPages pages(layout, 3, test::kPoison);
    const std::vector<std::byte> before = pages.pool().bytes();
    const auto numbers = random.normals<float>(plane.width);
    std::vector<int32_t> codes(static_cast<size_t>(plane.width));
    std::vector<double> back(static_cast<size_t>(plane.width));
    REQUIRE(write_latent(layout.plane(side), pages.pool().page_of(1), 1, numbers.data(), codes.data(), {}).ok());
    read_latent(layout.plane(side), pages.pool().page_of(1), 1, back.data());
    int64_t index = 0;
    for (const ScaleGroup& group : plane.scale_groups) {
      const double step = static_cast<double>(f32_from_f16(pages.scales(side, 1)[index++]));
      for (int32_t i = 0; i < group.count; ++i) {
        const size_t place = static_cast<size_t>(group.first + i);
        CHECK(std::abs(back[place] - static_cast<double>(numbers[place])) <= 0.5 * step + 1e-12);
        CHECK(back[place] == step * pages.code(side, 1, group, i));
      }
      const int32_t used = group.count * group.bits;
      if (used % 8 == 0) continue;
      const int last_byte = std::to_integer<int>(pages.codes(side, 1)[group.byte_offset + used / 8]);
      CHECK((last_byte >> (used % 8)) == 0);
    }
    for (int64_t i = plane.stored_width; i < plane.width; ++i) CHECK(back[static_cast<size_t>(i)] == 0.0);
    // Filled with poison again where the row lies, the page is what it was.
    std::memset(pages.codes(side, 1), 0xff, static_cast<size_t>(plane.code_bytes));
    std::memset(pages.scales(side, 1), 0xff, 2 * plane.scale_groups.size());
    CHECK(pages.pool().bytes() == before);
  }
}

}  // namespace
}  // namespace foldkv::backend::reference
