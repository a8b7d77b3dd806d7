#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// What errors of a layer group's stacked vectors cost: the quadratic form e^T M e, where M is block-diagonal with one
// symmetric block for each layer. Kept as the roots that turn rows into coordinates in which all errors cost the same.
struct Metric {
  int64_t block_width = 0;                         // key width of one layer
  std::vector<std::vector<double>> roots;          // of each layer: M^(1/2) [block_width][block_width]
  std::vector<std::vector<double>> inverse_roots;  // M^(-1/2), likewise
};

// blocks: the lower triangles of symmetric matrices [block_width][block_width] without negative eigenvalues, second
// moments of gradients for example. floor: this share of a block's mean eigenvalue is added to its diagonal (above 0),
// so that directions that showed no cost are not taken for free. A block of zeros takes the floor of the largest block.
// Numeric error when a block is not finite, or when all are zero.
[[nodiscard]] StatusOr<Metric> make_metric(const std::vector<std::vector<double>>& blocks, int64_t block_width,
                                           double floor);

}  // namespace foldkv
