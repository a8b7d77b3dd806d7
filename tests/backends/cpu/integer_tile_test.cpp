#include "backends/cpu/integer_tile.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/backends.h"
#include "tests/support/latent_pages.h"
#include "tests/support/memory_block.h"
#include "tests/support/random.h"

namespace foldkv::test {
namespace {

using backend::cpu::IntegerLatents;
using backend::cpu::Kernels;
using backend::cpu::kTile;

// Kernel sets of this machine that compute with integers.
std::vector<const Kernels*> integer_kernels() {
  std::vector<const Kernels*> sets;
  for (const BackendChoice& choice : tested_choices()) {
    const Kernels* kernels = backend::cpu::find_kernels(choice.instruction_set.c_str());
    if (kernels->has_integers) sets.push_back(kernels);
  }
  return sets;
}

// Latents of one tile, decoded in both ways.
class Tile {
 public:
  Tile(const Kernels& kernels, const backend::LatentPlane& plane, int64_t live, Random& random)
      : kernels_(kernels),
        layout_(make_layout(plane, plane, 0, 50)),  // a tile has tokens of two pages
        pages_(layout_, 7 + live, kPoison),
        numbers_(static_cast<size_t>(plane.stored_width * kTile)),
        integer_memory_(bytes_of([&](auto& workspace) { (void)IntegerLatents::take(workspace, plane.stored_width); })),
        scratch_memory_(bytes_of(
            [&](auto& workspace) { (void)backend::cpu::LatentScratch::take(workspace, plane.stored_width); })) {
    pages_.randomize(random, 0, 7 + live, 1.5);
    backend::cpu::Workspace scratch(scratch_memory_.data());
    const backend::cpu::LatentTileRequest request = {
        .kernels = kernels,
        .layout = layout_,
        .side = backend::Side::kKeys,
        .pages = pages_.pool().pages(),
        .slots = {7, live},
        .scratch = backend::cpu::LatentScratch::take(scratch, plane.stored_width)};
    backend::cpu::decode_latents_in_lanes(request, numbers_.data());
    backend::cpu::Workspace integers(integer_memory_.data());
    integers_ = IntegerLatents::take(integers, plane.stored_width);
    backend::cpu::decode_integer_latents(request, integers_);
    CHECK(integer_memory_.canary_alive());
  }

  [[nodiscard]] float number(int64_t coordinate, int64_t token) const {
    return numbers_[static_cast<size_t>(coordinate * kTile + token)];
  }
  [[nodiscard]] int32_t integer(int64_t coordinate, int64_t token) const {
    const auto* bytes = reinterpret_cast<const int8_t*>(integers_.words + coordinate / 4 * kTile + token);
    return bytes[coordinate % 4];
  }
  [[nodiscard]] const IntegerLatents& integers() const { return integers_; }

 private:
  template <typename Take>
  static int64_t bytes_of_take(const Take& take) {
    backend::cpu::Workspace counted(nullptr);
    take(counted);
    return counted.bytes();
  }
  template <typename Take>
  static MemoryBlock bytes_of(const Take& take) {
    return MemoryBlock(bytes_of_take(take), kPoison);
  }

  const Kernels& kernels_;
  backend::LatentLayout layout_;
  LatentPages pages_;
  std::vector<float> numbers_;
  MemoryBlock integer_memory_;
  MemoryBlock scratch_memory_;
  IntegerLatents integers_;
};

// Every code and rate, lengths that fill no register, several groups.
std::vector<backend::LatentPlane> planes() {
  std::vector<backend::LatentPlane> planes;
  for (const int64_t width : {16, 61, 64, 130, 200}) {
    for (int32_t bits = 2; bits <= 5; ++bits) planes.push_back(make_plane({{width, bits}}, 64));
    for (const LatentBand& band : trellis_bands(width)) planes.push_back(make_plane({band}, 128));
  }
  planes.push_back(make_plane({{64, 8}, {64, 6}, {128, 4, 1}, {192, 2, 1}, {128, 3, 2}, {130, 1, 2}}, 64));
  planes.push_back(make_plane({{16, 8}, {100, 7}, {400, 1, 1}, {17, 2}}, 48));
  planes.push_back(make_plane({{300, 8}, {700, 3}}, 128));
  return planes;
}

TEST_CASE("integers times scales are the latents") {
  Random random(5);
  for (const Kernels* kernels : integer_kernels()) {
    for (const backend::LatentPlane& plane : planes()) {
      REQUIRE(backend::cpu::takes_integers(plane));
      for (const int64_t live : {1, 17, 64}) {
        const Tile tile(*kernels, plane, live, random);
        // The first of a group's entries is that of all its coordinates.
        int64_t entry = 0;
        for (const backend::ScaleGroup& group : plane.scale_groups) {
          const backend::cpu::IntegerScale& scale = tile.integers().groups[entry++];
          REQUIRE(scale.first_word == group.first / 4);
          for (int64_t token = 0; token < kTile; ++token) {
            for (int64_t i = group.first; i < group.first + group.count; ++i) {
              const auto integer = static_cast<double>(tile.integer(i, token));
              const double number = token < live ? tile.number(i, token) : 0.0;
              REQUIRE(integer * static_cast<double>(scale.scales[token]) ==
                      doctest::Approx(number).epsilon(1e-6).scale(1e-6));
            }
          }
          const bool fine = entry < tile.integers().group_count &&
                            tile.integers().groups[entry].basis_word < backend::cpu::kFineWords;
          if (fine) ++entry;
        }
        CHECK(entry == tile.integers().group_count);
      }
    }
  }
}

TEST_CASE("rows rebuilt from integers are off by what rounding the basis can make") {
  Random random(6);
  for (const Kernels* kernels : integer_kernels()) {
    for (const backend::LatentPlane& plane : planes()) {
      const int64_t width = plane.width;
      for (const int64_t rows : {1, 5, 64, 67}) {
        const Tile tile(*kernels, plane, 64, random);
        const std::vector<float> basis = random.normals<float>(rows * width);
        const std::vector<float> start = random.normals<float>(rows);
        const MemoryBlock integers(rows * backend::cpu::integer_row_bytes(width), kPoison);
        backend::cpu::make_integer_basis(*kernels, basis.data(), rows, width, integers.data());
        CHECK(integers.canary_alive());
        MemoryBlock output(rows * kTile * 4, kPoison);
        backend::cpu::rebuild_from_integers(*kernels, tile.integers(),
                                            {.basis = integers.data(),
                                             .width = width,
                                             .rows = rows,
                                             .row_start = start.data(),
                                             .output = reinterpret_cast<float*>(output.data())});
        CHECK(output.canary_alive());
        for (int64_t row = 0; row < rows; ++row) {
          double largest = 0.0;
          for (int64_t i = 0; i < width; ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(basis[static_cast<size_t>(row * width + i)])));
          }
          for (int64_t token = 0; token < kTile; ++token) {
            double expected = start[static_cast<size_t>(row)];
            double bound = 1e-5;
            for (const backend::ScaleGroup& group : plane.scale_groups) {
              for (int64_t i = group.first; i < group.first + group.count; ++i) {
                const double latent = tile.number(i, token);
                expected += latent * static_cast<double>(basis[static_cast<size_t>(row * width + i)]);
                // Half a step of the row; of fine numbers a 254th of that.
                const bool fine =
                    i < backend::cpu::kFineNumbers && group.code == backend::Code::kUniform && group.bits >= 6;
                bound +=
                    std::abs(latent) * largest / 127.0 * 0.5 * (fine ? 1.01 / 254.0 : 1.0001) + std::abs(latent) * 1e-6;
              }
            }
            REQUIRE(std::abs(static_cast<double>(reinterpret_cast<const float*>(output.data())[row * kTile + token]) -
                             expected) <= bound);
          }
        }
      }
    }
  }
}

TEST_CASE("which planes take integers") {
  CHECK(backend::cpu::takes_integers(make_plane({{128, 4}}, 64)));
  CHECK(!backend::cpu::takes_integers(make_plane({{128, 6}}, 64)));             // fine codes
  CHECK(backend::cpu::takes_integers(make_plane({{64, 8}, {128, 3, 1}}, 64)));  // few of them
  CHECK(!backend::cpu::takes_integers(make_plane({{18, 4}, {128, 4}}, 64)));    // a group within a word
  CHECK(!backend::cpu::takes_integers(make_plane({{128, 4}}, 4)));              // too many scales
  backend::LatentPlane halves = make_plane({{64, 4}}, 64);
  halves.scale_groups[0].code = backend::Code::kHalf;
  CHECK(!backend::cpu::takes_integers(halves));
  backend::LatentPlane merged = make_plane({{64, 4}}, 64);
  merged.merged.layers = 2;
  CHECK(!backend::cpu::takes_integers(merged));
}

}  // namespace
}  // namespace foldkv::test
