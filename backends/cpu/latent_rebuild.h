#pragma once

#include <cstdint>

#include "backends/cpu/engine.h"
#include "backends/cpu/latent_tile.h"
#include "backends/cpu/workspace.h"
#include "backends/interface/operations.h"

namespace foldkv::backend::cpu {

// Rebuilt rows of one tile of latents after the other: shared by rebuild, sketch and coefficients.
class LatentRebuild {
 public:
  struct Options {
    const LatentLayout* layout = nullptr;
    const LatentRegion* region = nullptr;
    Side side = Side::kKeys;
    const float* basis = nullptr;  // [rows][plane width]; null: latents are rows
    int64_t first_row = 0;         // in the stacked vector
    int64_t rows = 0;
    bool with_correction = false;
  };

  // Scratch memory of one worker; layout null while counting: then widths are given.
  static LatentRebuild take(Workspace& workspace, int64_t latent_width, int64_t correction_rank);

  // output [live][stride], numbers [0, rows)
  void run(const Kernels& kernels, const Options& options, TileSlots slots, float* output, int64_t stride) const;

 private:
  static constexpr int64_t kBlockRows = 48;

  // Null: there is none.
  const float* find_mean(const Kernels& kernels, const Options& options, int64_t row, int64_t rows) const;
  void copy_block(const Kernels& kernels, const Options& options, int64_t row, int64_t rows) const;
  void rebuild_block(const Kernels& kernels, const Options& options, int64_t row, int64_t rows) const;

  LatentScratch latent_;
  float* latents_ = nullptr;       // [latent width][64]
  float* coefficients_ = nullptr;  // [rank][64]
  float* correction_ = nullptr;    // [kBlockRows][rank]
  float* mean_ = nullptr;          // [kBlockRows]
  float* block_ = nullptr;         // [kBlockRows][64]
};

}  // namespace foldkv::backend::cpu
