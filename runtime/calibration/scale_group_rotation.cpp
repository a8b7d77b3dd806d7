#include "runtime/calibration/scale_group_rotation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "runtime/profile/bands.h"

namespace foldkv {
namespace {

struct Block {
  size_t first = 0;
  size_t size = 0;  // a power of two
};

std::vector<Block> blocks_of(const std::vector<Band>& bands, size_t scale_group) {
  std::vector<Block> blocks;
  size_t band_first = 0;
  for (const Band& band : bands) {
    const size_t band_end = band_first + static_cast<size_t>(band.width);
    for (size_t first = band_first; first < band_end && band.bits > 0; first += scale_group) {
      const size_t end = std::min(first + scale_group, band_end);
      for (size_t block = first; block < end; block += blocks.back().size) {
        blocks.push_back({block, std::bit_floor(end - block)});
      }
    }
    band_first = band_end;
  }
  return blocks;
}

// The fast Walsh-Hadamard transform of `size` numbers in place, orthonormal.
void hadamard(double* numbers, size_t size) {
  for (size_t half = 1; half < size; half *= 2) {
    for (size_t first = 0; first < size; first += 2 * half) {
      for (size_t index = first; index < first + half; ++index) {
        const double sum = numbers[index] + numbers[index + half];
        numbers[index + half] = numbers[index] - numbers[index + half];
        numbers[index] = sum;
      }
    }
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  for (size_t index = 0; index < size; ++index) numbers[index] *= scale;
}

}  // namespace

void rotate_scale_groups(std::vector<double>& basis, const std::vector<Band>& bands, int64_t scale_group) {
  const auto columns = static_cast<size_t>(width_of(bands));
  const std::vector<Block> blocks = blocks_of(bands, static_cast<size_t>(scale_group));
  for (size_t row = 0; row < basis.size(); row += columns) {
    for (const Block& block : blocks) hadamard(basis.data() + row + block.first, block.size);
  }
}

}  // namespace foldkv
