#pragma once

#include <cstdint>

#include "backends/cpu/engine.h"
#include "backends/interface/operations.h"
#include "runtime/base/status.h"

// Operations of the latent codec, and calibration's.
namespace foldkv::backend::cpu {

[[nodiscard]] int64_t latent_workspace(const Engine& engine, const LatentShape& shape);
[[nodiscard]] Status mean(const Engine& engine, const MeanRequest& request);
[[nodiscard]] Status encode(const Engine& engine, const EncodeRequest& request);
void rebuild(const Engine& engine, const RebuildRequest& request);
void sketch(const Engine& engine, const SketchRequest& request);
[[nodiscard]] Status coefficients(const Engine& engine, const CoefficientsRequest& request);
[[nodiscard]] Status move_latents(const MoveLatentsRequest& request);
void moments(const Engine& engine, const MomentsRequest& request);

// The bytes of each operation alone.
[[nodiscard]] int64_t encode_workspace(const Engine& engine, int64_t stacked_width, int64_t latent_width,
                                       int64_t trellis_width);
[[nodiscard]] int64_t rebuild_workspace(const Engine& engine, int64_t latent_width, int64_t correction_rank);
[[nodiscard]] int64_t sketch_workspace(const Engine& engine, int64_t stacked_width, int64_t latent_width,
                                       int64_t columns);
[[nodiscard]] int64_t coefficients_workspace(const Engine& engine, int64_t stacked_width, int64_t latent_width,
                                             int64_t correction_rank);

}  // namespace foldkv::backend::cpu
