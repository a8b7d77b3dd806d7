#include "backends/cpu/residual.h"

#include <algorithm>

#include "backends/cpu/stacked_rows.h"

namespace foldkv::backend::cpu {

Residual Residual::take(Workspace& workspace, int64_t stacked_width, int64_t latent_width) {
  Residual residual;
  residual.rebuild_ = LatentRebuild::take(workspace, latent_width, 0);
  residual.rebuilt_ = workspace.take<float>(kTile * stacked_width);
  residual.row_ = workspace.take<float>(stacked_width);
  return residual;
}

void Residual::run(const Kernels& kernels, const Options& options, int64_t first, int64_t tokens, double* output,
                   int64_t stride) const {
  const int64_t width = options.rows->width();
  rebuild_.run(kernels,
               {.layout = options.layout,
                .region = options.region,
                .side = Side::kKeys,
                .basis = options.basis,
                .rows = width},
               {options.first_latent_slot + first, tokens}, rebuilt_, width);
  for (int64_t token = 0; token < tokens; ++token) {
    gather_stacked_row(kernels, *options.rows, first + token, rebuilt_ + token * width, row_);
    double* residual = output + token * stride;
    kernels.to_f64(row_, width, residual);
    std::fill(residual + width, residual + stride, 0.0);
  }
}

}  // namespace foldkv::backend::cpu
