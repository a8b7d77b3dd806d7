#pragma once

#include <cstdint>
#include <vector>

namespace foldkv {

// How much of a covariance estimate from few rows should give way to a multiple of the identity, 0 to 1: the oracle
// approximating shrinkage of Y. Chen, A. Wiesel, Y. C. Eldar, A. O. Hero, "Shrinkage algorithms for MMSE covariance
// estimation", IEEE Transactions on Signal Processing 58 (2010), equation 23. It is made for Gaussian rows and needs only
// the traces of the matrix and of its square.
//
// covariance: [width][width], of which the lower triangle is read. degrees_of_freedom: rows that it comes from, one less
// when their mean was subtracted; 1 or more. A multiple of the identity gives 1.
[[nodiscard]] double oracle_shrinkage(const std::vector<double>& covariance, int64_t width, int64_t degrees_of_freedom);

// covariance becomes (1 - share) covariance + share * (trace / width) * identity, in its lower triangle. The trace stays.
void shrink_covariance(std::vector<double>& covariance, int64_t width, double share);

}  // namespace foldkv
