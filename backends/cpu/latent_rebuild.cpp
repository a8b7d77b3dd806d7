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

const float* LatentRebuild::find_mean(const Kernels& kernels, const Options& options, int64_t row, int64_t rows) const {
  const uint16_t* mean = options.side == Side::kKeys ? options.region->key_mean : options.region->value_mean;
  if (mean == nullptr) return nullptr;
  kernels.to_f32(NumberFormat::kF16, mean + options.first_row + row, rows, mean_);
  return mean_;
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
  if (const float* mean = find_mean(kernels, options, row, rows)) {
    product.start = MatrixProduct::Start::kRow;
    product.row_start = mean;
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

// Without a basis: the latent's numbers are those of the row.
void LatentRebuild::copy_block(const Kernels& kernels, const Options& options, int64_t row, int64_t rows) const {
  const int64_t first = options.layout->plane(options.side).coordinate_of(options.first_row + row);
  std::copy_n(latents_ + first * kTile, rows * kTile, block_);
  const float* mean = find_mean(kernels, options, row, rows);
  if (mean == nullptr) return;
  for (int64_t i = 0; i < rows; ++i) {
    std::for_each(block_ + i * kTile, block_ + (i + 1) * kTile, [&](float& number) { number += mean[i]; });
  }
}

void LatentRebuild::run(const Kernels& kernels, const Options& options, TileSlots slots, float* output,
                        int64_t stride) const {
  const LatentPlane& plane = options.layout->plane(options.side);
  if (plane.merged.layers > 0 && options.rows > plane.width) {
    // Whole layers, whose latents differ.
    for (int64_t row = 0; row < options.rows; row += plane.width) {
      Options layer = options;
      layer.first_row = options.first_row + row;
      layer.rows = plane.width;
      run(kernels, layer, slots, output + row, stride);
    }
    return;
  }
  decode_latents_in_lanes({.kernels = kernels,
                           .layout = *options.layout,
                           .side = options.side,
                           .pages = options.region->pages,
                           .slots = slots,
                           .scratch = latent_,
                           .layer = options.first_row / plane.width},
                          latents_);
  if (options.with_correction) {
    coefficients_in_lanes(kernels, *options.layout, options.region->pages, slots, coefficients_);
  }
  for (int64_t row = 0; row < options.rows; row += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, options.rows - row);
    if (options.basis == nullptr) {
      copy_block(kernels, options, row, rows);
    } else {
      rebuild_block(kernels, options, row, rows);
    }
    kernels.untranspose_tile(block_, rows, slots.live, output + row, stride);
  }
}

}  // namespace foldkv::backend::cpu
