#include "backends/reference/latent_arrays.h"

#include <algorithm>

#include "backends/reference/exact_row.h"
#include "backends/reference/latent_token.h"

namespace foldkv::backend::reference {

LatentArrays place_latent_arrays(const LatentShape& shape, Scratch& scratch) {
  const int64_t latent_width = std::max(shape.key_latent_width, shape.value_latent_width);
  LatentArrays arrays;
  arrays.row = scratch.take<double>(shape.stacked_width);
  arrays.rebuilt = scratch.take<double>(shape.stacked_width);
  arrays.latent = scratch.take<double>(latent_width);
  const int64_t row_width = shape.run_tokens > 1 ? shape.stacked_width : 0;  // merged heads gather rows
  arrays.run = scratch.take<float>(shape.run_tokens * std::max(latent_width, row_width));
  arrays.codes = scratch.take<int32_t>(latent_width);
  arrays.columns = scratch.take<double>(shape.sketch_columns);
  arrays.trellis = TrellisArrays::place(scratch, shape.trellis_width);
  return arrays;
}

int64_t latent_workspace(const LatentShape& shape) {
  Scratch scratch(nullptr);
  (void)place_latent_arrays(shape, scratch);
  return scratch.used();
}

void read_residual(const Residual& residual, int64_t index, const LatentArrays& arrays) {
  const int64_t width = residual.rows.width();
  const LatentSlice slice =
      latent_slice(residual.layout, residual.region, residual.rows.side, residual.basis, 0, width, false);
  read_stacked_row(residual.rows, index, arrays.row);
  rebuild_token(slice, residual.region.pages, residual.first_latent_slot + index, arrays.latent, arrays.rebuilt);
  for (int64_t i = 0; i < width; ++i) arrays.row[i] -= arrays.rebuilt[i];
}

}  // namespace foldkv::backend::reference
