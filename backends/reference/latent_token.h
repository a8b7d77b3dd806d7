#pragma once

#include <cstdint>

#include "backends/interface/operations.h"

namespace foldkv::backend::reference {

// How a slice of the stacked vector (one layer, or all) is rebuilt from the latents of one side.
struct LatentSlice {
  const LatentLayout* layout = nullptr;
  Side side = Side::kKeys;
  const float* basis = nullptr;  // the slice's rows [row_count][plane width]; null: latents are rows
  int64_t first_row = 0;
  int64_t row_count = 0;
  const uint16_t* mean = nullptr;              // f16 [row_count]; null: zero
  const uint16_t* correction_basis = nullptr;  // f16 [row_count][correction_rank]; null: none

  [[nodiscard]] const LatentPlane& plane() const { return layout->plane(side); }
};

// The slice of a region that starts at first_row. Only keys are corrected.
[[nodiscard]] LatentSlice latent_slice(const LatentLayout& layout, const LatentRegion& region, Side side,
                                       const float* basis, int64_t first_row, int64_t row_count, bool corrected);

// row [row_count] = basis latent + mean + correction of the token in `slot`. latent: scratch [stored width].
void rebuild_token(const LatentSlice& slice, std::byte* const* pages, int64_t slot, double* latent, double* row);

// f16 numbers of one token: its coefficients on the correction basis.
[[nodiscard]] uint16_t* coefficients_of(const LatentLayout& layout, std::byte* const* pages, int64_t slot);

}  // namespace foldkv::backend::reference
