#include <algorithm>
#include <atomic>
#include <span>

#include "backends/cpu/f16_of_double.h"
#include "backends/cpu/latents.h"
#include "backends/cpu/residual.h"

namespace foldkv::backend::cpu {
namespace {

struct Scratch {
  Residual residual;
  double* rows = nullptr;          // [64][padded stacked width]
  double* coefficients = nullptr;  // [64][rank]

  static Scratch take(Workspace& workspace, int64_t width, int64_t latent_width, int64_t rank) {
    Scratch scratch;
    scratch.residual = Residual::take(workspace, width, latent_width);
    scratch.rows = workspace.take<double>(kTile * round_up(width, kWidthPadding));
    scratch.coefficients = workspace.take<double>(kTile * rank);
    return scratch;
  }
};

struct Shared {
  double* basis = nullptr;  // [rank][stacked width]
  std::span<Scratch> workers;

  static Shared take(Workspace& workspace, const Engine& engine, int64_t width, int64_t rank) {
    Shared shared;
    shared.basis = workspace.take<double>(rank * width);
    shared.workers = {workspace.take<Scratch>(engine.workers()), static_cast<size_t>(engine.workers())};
    return shared;
  }
};

bool store_coefficients(const CoefficientsRequest& request, int64_t slot, const double* coefficients) {
  const LatentLayout& layout = *request.layout;
  std::byte* page = latent_page(request.region.pages, layout, slot) + layout.coefficients_offset;
  auto* halves = reinterpret_cast<uint16_t*>(page) + slot % layout.page_tokens * layout.correction_rank;
  bool in_range = true;
  for (int64_t column = 0; column < layout.correction_rank; ++column) {
    halves[column] = f16_from_f64(coefficients[column]);
    in_range = in_range && is_finite_f16(halves[column]);
  }
  return in_range;
}

bool find_coefficients(const Engine& engine, const CoefficientsRequest& request, const Shared& shared, int64_t first,
                       const Scratch& scratch) {
  const int64_t width = request.rows.width();
  const int64_t stride = round_up(width, kWidthPadding);
  const int64_t rank = request.layout->correction_rank;
  const int64_t tokens = std::min(kTile, request.rows.count - first);
  scratch.residual.run(engine.kernels,
                       {.rows = &request.rows,
                        .layout = request.layout,
                        .region = &request.region,
                        .first_latent_slot = request.first_latent_slot,
                        .basis = request.basis},
                       first, tokens, scratch.rows, stride);
  engine.kernels.wide_row_product({.rows = tokens,
                                   .columns = rank,
                                   .depth = width,
                                   .x = scratch.rows,
                                   .x_stride = stride,
                                   .w = shared.basis,
                                   .w_stride = width,
                                   .y = scratch.coefficients,
                                   .y_stride = rank});
  bool in_range = true;
  for (int64_t token = 0; token < tokens; ++token) {
    const int64_t slot = request.first_latent_slot + first + token;
    in_range = store_coefficients(request, slot, scratch.coefficients + token * rank) && in_range;
  }
  return in_range;
}

}  // namespace

int64_t coefficients_workspace(const Engine& engine, int64_t stacked_width, int64_t latent_width,
                               int64_t correction_rank) {
  if (correction_rank == 0) return 0;
  Workspace workspace(nullptr);
  Shared::take(workspace, engine, stacked_width, correction_rank);
  for (int64_t worker = 0; worker < engine.workers(); ++worker) {
    Scratch::take(workspace, stacked_width, latent_width, correction_rank);
  }
  return workspace.bytes();
}

Status coefficients(const Engine& engine, const CoefficientsRequest& request) {
  const int64_t width = request.rows.width();
  const int64_t rank = request.layout->correction_rank;
  Workspace workspace(request.workspace);
  const Shared shared = Shared::take(workspace, engine, width, rank);
  for (Scratch& worker : shared.workers) {
    worker = Scratch::take(workspace, width, request.layout->keys.stored_width, rank);
  }
  for (int64_t row = 0; row < width; ++row) {
    for (int64_t column = 0; column < rank; ++column) {
      shared.basis[column * width + row] =
          static_cast<double>(f32_from_f16(request.region.correction_basis[row * rank + column]));
    }
  }
  std::atomic<bool> in_range = true;
  engine.threads.run(divide_up(request.rows.count, kTile), [&](int64_t tile, int worker) {
    if (!find_coefficients(engine, request, shared, tile * kTile, shared.workers[static_cast<size_t>(worker)])) {
      in_range = false;
    }
  });
  if (!in_range) return numeric_error("the coefficients of the correction are beyond f16");
  return absl::OkStatus();
}

}  // namespace foldkv::backend::cpu
