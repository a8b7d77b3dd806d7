#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/interface/operations.h"
#include "tests/support/exact_pages.h"
#include "tests/support/latent_pages.h"
#include "tests/support/random.h"

namespace foldkv::test {

// The exact regions of the layers of one group.
class StackedPages {
 public:
  StackedPages(const backend::ExactLayout& layout, int64_t layers, int64_t tokens, std::byte fill) : layout_(layout) {
    for (int64_t i = 0; i < layers; ++i) pages_.emplace_back(layout, tokens, fill);
    for (const ExactPages& pages : pages_) regions_.push_back(pages.region());
  }

  [[nodiscard]] int64_t width() const { return static_cast<int64_t>(pages_.size()) * layout_.width; }
  [[nodiscard]] const ExactPages& layer(int64_t index) const { return pages_[static_cast<size_t>(index)]; }
  [[nodiscard]] backend::StackedRows rows(backend::Side side, int64_t first_slot, int64_t count) const {
    return {regions_, layout_, side, first_slot, count};
  }
  // row [width()] into one slot of every layer
  void put(backend::Side side, int64_t slot, const float* row) const {
    for (const ExactPages& pages : pages_) {
      pages.put(side, slot, row);
      row += layout_.width;
    }
  }
  // [count][width()], as stored
  [[nodiscard]] std::vector<double> numbers(backend::Side side, int64_t first_slot, int64_t count) const {
    std::vector<double> all;
    for (int64_t slot = first_slot; slot < first_slot + count; ++slot) {
      for (const ExactPages& pages : pages_) {
        const std::vector<double> part = pages.numbers(side, slot, 1);
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    return all;
  }

 private:
  backend::ExactLayout layout_;
  std::vector<ExactPages> pages_;
  std::vector<backend::ExactRegion> regions_;
};

// A basis [width][latent_width] whose columns are about of unit length, so that rebuilt rows and latents are of one
// size.
[[nodiscard]] inline std::vector<float> random_basis(Random& random, int64_t width, int64_t latent_width) {
  return random.normals<float>(width * latent_width, 1.0 / std::sqrt(static_cast<double>(width)));
}

}  // namespace foldkv::test
