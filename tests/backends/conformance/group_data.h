#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/backends/conformance/table.h"
#include "tests/support/layer_group.h"

namespace foldkv::test {

// A layer group and the run of its tokens that an operation works on.
struct GroupShape {
  int64_t layers = 1;
  int64_t layer_width = 1;
  std::vector<LatentBand> key_bands;
  std::vector<LatentBand> value_bands;
  int64_t scale_group = 128;
  int64_t correction_rank = 0;
  int64_t count = 1;       // tokens
  int64_t first_slot = 0;  // of the exact regions
  int64_t first_latent_slot = 0;
  NumberFormat format = NumberFormat::kF16;
  int64_t exact_page_tokens = 32;
  int64_t latent_page_tokens = 64;
  bool means = true;

  [[nodiscard]] int64_t width() const { return layers * layer_width; }
};

[[nodiscard]] std::string describe(const GroupShape& shape);
[[nodiscard]] GroupShape random_group(Random& random);

// The group's memory, all of it from a seed. Exact rows and latents of the run are random and unrelated; slots beside
// the run hold `fill`.
struct GroupData {
  GroupData(const GroupShape& shape, uint64_t seed, std::byte fill);

  [[nodiscard]] backend::LatentRegion region(bool corrected) const;
  [[nodiscard]] const std::vector<float>& basis(backend::Side side) const {
    return side == backend::Side::kKeys ? key_basis : value_basis;
  }
  [[nodiscard]] const uint16_t* mean(backend::Side side) const;
  [[nodiscard]] backend::StackedRows rows(backend::Side side) const {
    return exact.rows(side, shape.first_slot, shape.count);
  }
  [[nodiscard]] backend::LatentShape latent_shape(int64_t sketch_columns) const;
  [[nodiscard]] bool canaries_alive() const;

  GroupShape shape;
  Random random;
  backend::LatentLayout layout;
  StackedPages exact;
  LatentPages latents;
  std::vector<float> key_basis;      // [width][key latent width]
  std::vector<float> value_basis;    // [width][value latent width]
  std::vector<uint16_t> key_mean;    // [width]
  std::vector<uint16_t> value_mean;  // [width]
  std::vector<uint16_t> correction;  // [width][rank]
};

}  // namespace foldkv::test
