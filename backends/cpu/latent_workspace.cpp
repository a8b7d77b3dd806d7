#include <algorithm>

#include "backends/cpu/latents.h"

namespace foldkv::backend::cpu {

int64_t latent_workspace(const Engine& engine, const LatentShape& shape) {
  const int64_t latent_width = std::max(shape.key_latent_width, shape.value_latent_width);
  return std::max({encode_workspace(engine, shape.stacked_width, latent_width, shape.trellis_width),
                   rebuild_workspace(engine, latent_width, shape.sketch_columns),
                   sketch_workspace(engine, shape.stacked_width, shape.key_latent_width, shape.sketch_columns),
                   coefficients_workspace(engine, shape.stacked_width, shape.key_latent_width, shape.sketch_columns)});
}

}  // namespace foldkv::backend::cpu
