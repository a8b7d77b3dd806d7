#include "backends/reference/rebuild.h"

#include "backends/reference/latent_arrays.h"
#include "backends/reference/latent_token.h"

namespace foldkv::backend::reference {

Status rebuild(const RebuildRequest& request) {
  const LatentSlice slice = latent_slice(*request.layout, request.region, request.side, request.basis,
                                         request.first_row, request.row_count, true);
  const int64_t latent_width = slice.plane().stored_width;
  Scratch scratch(request.workspace);
  const LatentArrays arrays =
      place_latent_arrays({request.row_count, latent_width, latent_width, 0, request.count}, scratch);
  float* output = request.output;
  for (int64_t t = 0; t < request.count; ++t) {
    rebuild_token(slice, request.region.pages, request.first + t, arrays.latent, arrays.rebuilt);
    for (int64_t i = 0; i < request.row_count; ++i) *output++ = static_cast<float>(arrays.rebuilt[i]);
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
