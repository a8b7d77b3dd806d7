#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

struct PrincipalDirections {
  std::vector<double> variances;  // [width], falling, none below 0
  std::vector<double> basis;      // [width][columns], orthonormal columns: the directions of the leading variances
};

// Eigenvalues and leading eigenvectors of a covariance matrix [width][width], of which the lower triangle is read.
// The sign of a direction is that which makes its component of largest magnitude positive (of equal ones the first).
// columns: 1 to width. Numeric error when the matrix is not finite or the iteration does not converge.
[[nodiscard]] StatusOr<PrincipalDirections> principal_directions(const std::vector<double>& covariance, int64_t width,
                                                                 int64_t columns);

}  // namespace foldkv
