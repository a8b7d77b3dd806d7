#pragma once

#include <cstdint>

#include "backends/cpu/engine.h"
#include "backends/cpu/latent_rebuild.h"
#include "backends/cpu/workspace.h"
#include "backends/interface/operations.h"

namespace foldkv::backend::cpu {

// The key residual of a tile of tokens: exact rows minus rebuilt ones (without correction), in double precision.
class Residual {
 public:
  struct Options {
    const StackedRows* rows = nullptr;
    const LatentLayout* layout = nullptr;
    const LatentRegion* region = nullptr;
    int64_t first_latent_slot = 0;
    const float* basis = nullptr;
  };

  // Scratch memory of one worker.
  static Residual take(Workspace& workspace, int64_t stacked_width, int64_t latent_width);

  // Tokens [first, first + tokens) of the rows, at most 64; output [tokens][stride], zero from the width on.
  void run(const Kernels& kernels, const Options& options, int64_t first, int64_t tokens, double* output,
           int64_t stride) const;

 private:
  LatentRebuild rebuild_;
  float* rebuilt_ = nullptr;  // [64][stacked width]
  float* row_ = nullptr;      // [stacked width]
};

}  // namespace foldkv::backend::cpu
