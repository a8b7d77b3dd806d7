#include "backends/reference/sketch.h"

#include <algorithm>

#include "backends/reference/basis.h"
#include "backends/reference/latent_arrays.h"

namespace foldkv::backend::reference {

// Each token adds residual * (residual^T test), so that nothing grows with the number of tokens.
Status sketch(const SketchRequest& request) {
  const int64_t width = request.rows.width();
  const int64_t columns = request.columns;
  const int64_t latent_width = request.layout->keys.stored_width;
  Scratch scratch(request.workspace);
  const LatentArrays arrays =
      place_latent_arrays({width, latent_width, latent_width, columns, request.rows.count}, scratch);
  const Residual residual{request.rows, *request.layout, request.region, request.first_latent_slot, request.basis};
  std::fill_n(request.sketch, width * columns, 0.0);
  for (int64_t t = 0; t < request.rows.count; ++t) {
    read_residual(residual, t, arrays);
    project(request.test, width, columns, columns, arrays.row, arrays.columns);
    for (int64_t i = 0; i < width; ++i) {
      for (int64_t j = 0; j < columns; ++j) request.sketch[i * columns + j] += arrays.row[i] * arrays.columns[j];
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
