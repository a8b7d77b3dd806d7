#pragma once

#include <cstdint>
#include <vector>

#include "runtime/calibration/metric.h"

namespace foldkv {

// covariance [width][width], lower triangle: R C R with R the metric's roots; width: that of all its blocks together.
// The upper triangle is written too.
void weigh_covariance(const Metric& metric, std::vector<double>& covariance);

// result [width][columns]: the block-diagonal matrix of `blocks` (roots or inverse roots) times matrix.
[[nodiscard]] std::vector<double> multiply_blocks(const std::vector<std::vector<double>>& blocks, int64_t block_width,
                                                  const std::vector<double>& matrix, int64_t columns);

}  // namespace foldkv
