#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/reference/numbers.h"

// Products with the first `width` columns of a basis [row_count][stride]. Templates, since profiles hold f32 and tests
// want more.
namespace foldkv::backend::reference {

// latent [width] = basis^T centred
template <typename Number>
void project(const Number* basis, int64_t row_count, int64_t stride, int64_t width, const double* centred,
             double* latent) {
  std::fill_n(latent, width, 0.0);
  for (int64_t row = 0; row < row_count; ++row) {
    const Number* const numbers = basis + row * stride;
    for (int64_t i = 0; i < width; ++i) latent[i] += static_cast<double>(numbers[i]) * centred[row];
  }
}

// rows [row_count] = basis latent
template <typename Number>
void expand(const Number* basis, int64_t row_count, int64_t stride, int64_t width, const double* latent, double* rows) {
  for (int64_t row = 0; row < row_count; ++row) rows[row] = dot(basis + row * stride, latent, width);
}

}  // namespace foldkv::backend::reference
