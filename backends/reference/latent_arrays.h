#pragma once

#include <cstdint>

#include "backends/interface/operations.h"
#include "backends/reference/scratch.h"
#include "backends/reference/trellis.h"

namespace foldkv::backend::reference {

// What a latent operation needs for the one token in hand, whichever operation it is.
struct LatentArrays {
  double* row = nullptr;      // [stacked width]
  double* rebuilt = nullptr;  // [stacked width]
  double* latent = nullptr;   // [the wider latent]
  float* run = nullptr;       // [run tokens][the widest of latents and rows]
  int32_t* codes = nullptr;   // [the wider latent]
  double* columns = nullptr;  // [max(sketch columns, correction rank)]
  TrellisArrays trellis;
};

[[nodiscard]] LatentArrays place_latent_arrays(const LatentShape& shape, Scratch& scratch);
[[nodiscard]] int64_t latent_workspace(const LatentShape& shape);

// What the correction mends: rows of tokens less what their latents give back without it.
struct Residual {
  const StackedRows& rows;
  const LatentLayout& layout;
  const LatentRegion& region;
  int64_t first_latent_slot = 0;
  const float* basis = nullptr;
};
// arrays.row [rows.width()] = the residual of token `index` of the rows.
void read_residual(const Residual& residual, int64_t index, const LatentArrays& arrays);

}  // namespace foldkv::backend::reference
