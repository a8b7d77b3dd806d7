#include "backends/reference/encode.h"

#include "backends/reference/basis.h"
#include "backends/reference/exact_row.h"
#include "backends/reference/latent_arrays.h"
#include "backends/reference/latent_row.h"
#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

// The latent is rounded to f32 before it is quantized: from there on every backend has the same input.
Status encode(const EncodeRequest& request) {
  const LatentLayout& layout = *request.layout;
  const LatentPlane& plane = layout.plane(request.rows.side);
  const int64_t width = request.rows.width();
  Scratch scratch(request.workspace);
  const LatentArrays arrays = place_latent_arrays(
      {width, plane.stored_width, plane.stored_width, 0, request.rows.count, plane.trellis_width()}, scratch);
  for (int64_t t = 0; t < request.rows.count; ++t) {
    read_stacked_row(request.rows, t, arrays.row);
    if (request.mean != nullptr) {
      for (int64_t i = 0; i < width; ++i) arrays.row[i] -= double_from_f16(request.mean[i]);
    }
    project(request.basis, width, plane.width, plane.stored_width, arrays.row, arrays.latent);
    for (int64_t i = 0; i < plane.stored_width; ++i) arrays.rounded[i] = static_cast<float>(arrays.latent[i]);
    const int64_t slot = request.first_latent_slot + t;
    FOLDKV_RETURN_IF_ERROR(write_latent(plane, request.pages[slot / layout.page_tokens], slot % layout.page_tokens,
                                        arrays.rounded, arrays.codes, arrays.trellis));
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
