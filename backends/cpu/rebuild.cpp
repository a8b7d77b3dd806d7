#include <algorithm>
#include <span>

#include "backends/cpu/latent_rebuild.h"
#include "backends/cpu/latents.h"

namespace foldkv::backend::cpu {
namespace {

std::span<LatentRebuild> take_workers(Workspace& workspace, const Engine& engine) {
  return {workspace.take<LatentRebuild>(engine.workers()), static_cast<size_t>(engine.workers())};
}

}  // namespace

int64_t rebuild_workspace(const Engine& engine, int64_t latent_width, int64_t correction_rank) {
  Workspace workspace(nullptr);
  take_workers(workspace, engine);
  for (int64_t worker = 0; worker < engine.workers(); ++worker) {
    LatentRebuild::take(workspace, latent_width, correction_rank);
  }
  return workspace.bytes();
}

void rebuild(const Engine& engine, const RebuildRequest& request) {
  const LatentLayout& layout = *request.layout;
  Workspace workspace(request.workspace);
  const std::span<LatentRebuild> workers = take_workers(workspace, engine);
  for (LatentRebuild& worker : workers) {
    worker = LatentRebuild::take(workspace, layout.plane(request.side).stored_width, layout.correction_rank);
  }
  const LatentRebuild::Options options = {
      .layout = request.layout,
      .region = &request.region,
      .side = request.side,
      .basis = request.basis,
      .first_row = request.first_row,
      .rows = request.row_count,
      .with_correction = request.side == Side::kKeys && layout.correction_rank > 0 &&
                         request.region.correction_basis != nullptr};
  engine.threads.run(divide_up(request.count, kTile), [&](int64_t tile, int worker) {
    const int64_t first = tile * kTile;
    const TileSlots slots = {request.first + first, std::min(kTile, request.count - first)};
    workers[static_cast<size_t>(worker)].run(engine.kernels, options, slots, request.output + first * request.row_count,
                                             request.row_count);
  });
}

}  // namespace foldkv::backend::cpu
