#include "backends/cpu/latent_rebuild.h"

#include <algorithm>

namespace foldkv::backend::cpu {

LatentRebuild LatentRebuild::take(Workspace& workspace, int64_t latent_width, int64_t correction_rank) {
  LatentRebuild rebuild;
  rebuild.latent_ = LatentScratch::take(workspace, latent_width);
  rebuild.latents_ = workspace.take<float>(latent_width * kTile);
  rebuild.coefficients_ = workspace.take<float>(correction_rank * kTile);
  rebuild.correction_ = workspace.take<float>(kBlockRows * correction_rank);
  rebuild.mean_ = workspace.take<float>(kBlockRows);
  rebuild.block_ = workspace.take<float>(kBlockRows * kTile);
  return rebuild;
}

void LatentRebuild::rebuild_block(const Kernels& kernels, const Options& options, int64_t row, int64_t rows) const {
  const LatentPlane& plane = options.layout->plane(options.side);
  MatrixProduct product = {.rows = rows,
                           .columns = kTile,
                           .depth = plane.stored_width,
                           .a = options.basis + row * plane.width,
                           .a_stride = plane.width,
                           .b = latents_,
                           .b_stride = kTile,
                           .c = block_,
                           .c_stride = kTile};
  const uint16_t* mean = options.side == Side::kKeys ? options.region->key_mean : options.region->value_mean;
  if (mean != nullptr) {
    kernels.to_f32(NumberFormat::kF16, mean + options.first_row + row, rows, mean_);
    product.start = MatrixProduct::Start::kRow;
    product.row_start = mean_;
  }
  kernels.matrix_product(product);
  if (!options.with_correction) return;
  const int64_t rank = options.layout->correction_rank;
  kernels.to_f32(NumberFormat::kF16, options.region->correction_basis + (options.first_row + row) * rank, rows * rank,
                 correction_);
  product.depth = rank;
  product.a = correction_;
  product.a_stride = rank;
  product.b = coefficients_;
  product.start = MatrixProduct::Start::kKeep;
  kernels.matrix_product(product);
}

void LatentRebuild::run(const Kernels& kernels, const Options& options, TileSlots slots, float* output,
                        int64_t stride) const {
  decode_latents_in_lanes({.kernels = kernels,
                           .layout = *options.layout,
                           .side = options.side,
                           .pages = options.region->pages,
                           .slots = slots,
                           .scratch = latent_},
                          latents_);
  if (options.with_correction) {
    coefficients_in_lanes(kernels, *options.layout, options.region->pages, slots, coefficients_);
  }
  for (int64_t row = 0; row < options.rows; row += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, options.rows - row);
    rebuild_block(kernels, options, row, rows);
    kernels.untranspose_tile(block_, rows, slots.live, output + row, stride);
  }
}

}  // namespace foldkv::backend::cpu
