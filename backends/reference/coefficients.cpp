#include "backends/reference/coefficients.h"

#include <algorithm>

#include "backends/reference/latent_arrays.h"
#include "backends/reference/latent_token.h"
#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

Status coefficients(const CoefficientsRequest& request) {
  const int64_t width = request.rows.width();
  const int64_t rank = request.layout->correction_rank;
  const int64_t latent_width = request.layout->keys.stored_width;
  const uint16_t* const basis = request.region.correction_basis;  // [width][rank]
  Scratch scratch(request.workspace);
  const LatentArrays arrays =
      place_latent_arrays({width, latent_width, latent_width, rank, request.rows.count}, scratch);
  const Residual residual{request.rows, *request.layout, request.region, request.first_latent_slot, request.basis};
  for (int64_t t = 0; t < request.rows.count; ++t) {
    read_residual(residual, t, arrays);
    std::fill_n(arrays.columns, rank, 0.0);
    for (int64_t i = 0; i < width; ++i) {
      for (int64_t j = 0; j < rank; ++j) arrays.columns[j] += double_from_f16(basis[i * rank + j]) * arrays.row[i];
    }
    uint16_t* const target = coefficients_of(*request.layout, request.region.pages, request.first_latent_slot + t);
    for (int64_t j = 0; j < rank; ++j) {
      if (!write_number(NumberFormat::kF16, reinterpret_cast<std::byte*>(target), j, arrays.columns[j])) {
        return numeric_error(
            absl::StrCat("correction coefficient ", arrays.columns[j], " of token ", t, " is not finite in f16"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
