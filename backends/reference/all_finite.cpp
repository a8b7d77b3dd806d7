#include "backends/reference/all_finite.h"

#include <cmath>

namespace foldkv::backend::reference {

bool all_finite(const TensorView& view) {
  for (int64_t row = 0; row < view.row_count; ++row) {
    for (int64_t column = 0; column < view.column_count; ++column) {
      if (!std::isfinite(number_at(view.format, view.row(row), column))) return false;
    }
  }
  return true;
}

}  // namespace foldkv::backend::reference
