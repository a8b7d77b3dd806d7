#include <algorithm>
#include <span>

#include "backends/cpu/latents.h"
#include "backends/cpu/residual.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kBlockTokens = 4 * kTile;  // whose residual is held at once
constexpr int64_t kUnitColumns = 64;         // of the stacked width

struct Shared {
  int64_t stride = 0;          // padded stacked width
  double* test = nullptr;      // [columns][stacked width]
  double* residual = nullptr;  // [kBlockTokens][stride]
  double* products = nullptr;  // residual * test: [kBlockTokens][columns]
  double* sums = nullptr;      // [columns][stride]
  std::span<Residual> workers;

  static Shared take(Workspace& workspace, const Engine& engine, int64_t width, int64_t columns) {
    Shared shared;
    shared.stride = round_up(width, kWidthPadding);
    shared.test = workspace.take<double>(columns * width);
    shared.residual = workspace.take<double>(kBlockTokens * shared.stride);
    shared.products = workspace.take<double>(kBlockTokens * columns);
    shared.sums = workspace.take<double>(columns * shared.stride);
    shared.workers = {workspace.take<Residual>(engine.workers()), static_cast<size_t>(engine.workers())};
    return shared;
  }
};

struct Context {
  const Engine& engine;
  const SketchRequest& request;
  int64_t width;
  Shared shared;
};

void find_products(const Context& context, int64_t first, int64_t tokens, int64_t token_of_block, int worker) {
  const SketchRequest& request = context.request;
  double* residual = context.shared.residual + token_of_block * context.shared.stride;
  context.shared.workers[static_cast<size_t>(worker)].run(context.engine.kernels,
                                                          {.rows = &request.rows,
                                                           .layout = request.layout,
                                                           .region = &request.region,
                                                           .first_latent_slot = request.first_latent_slot,
                                                           .basis = request.basis},
                                                          first, tokens, residual, context.shared.stride);
  context.engine.kernels.wide_row_product({.rows = tokens,
                                           .columns = request.columns,
                                           .depth = context.width,
                                           .x = residual,
                                           .x_stride = context.shared.stride,
                                           .w = context.shared.test,
                                           .w_stride = context.width,
                                           .y = context.shared.products + token_of_block * request.columns,
                                           .y_stride = request.columns});
}

void add_block(const Context& context, int64_t tokens, int64_t unit) {
  const int64_t column = unit * kUnitColumns;
  context.engine.kernels.outer_sum({.tokens = tokens,
                                    .rows = context.request.columns,
                                    .columns = std::min(kUnitColumns, context.shared.stride - column),
                                    .left = context.shared.products,
                                    .left_stride = context.request.columns,
                                    .right = context.shared.residual + column,
                                    .right_stride = context.shared.stride,
                                    .sum = context.shared.sums + column,
                                    .sum_stride = context.shared.stride});
}

}  // namespace

int64_t sketch_workspace(const Engine& engine, int64_t stacked_width, int64_t latent_width, int64_t columns) {
  if (columns == 0) return 0;
  Workspace workspace(nullptr);
  Shared::take(workspace, engine, stacked_width, columns);
  for (int64_t worker = 0; worker < engine.workers(); ++worker) Residual::take(workspace, stacked_width, latent_width);
  return workspace.bytes();
}

void sketch(const Engine& engine, const SketchRequest& request) {
  const int64_t width = request.rows.width();
  const int64_t columns = request.columns;
  Workspace workspace(request.workspace);
  const Context context = {engine, request, width, Shared::take(workspace, engine, width, columns)};
  const Shared& shared = context.shared;
  for (Residual& worker : shared.workers) worker = Residual::take(workspace, width, request.layout->keys.stored_width);
  for (int64_t row = 0; row < width; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      shared.test[column * width + row] = request.test[row * columns + column];
    }
  }
  std::fill_n(shared.sums, columns * shared.stride, 0.0);
  for (int64_t block = 0; block < request.rows.count; block += kBlockTokens) {
    const int64_t tokens = std::min(kBlockTokens, request.rows.count - block);
    engine.threads.run(divide_up(tokens, kTile), [&](int64_t tile, int worker) {
      const int64_t first = tile * kTile;
      find_products(context, block + first, std::min(kTile, tokens - first), first, worker);
    });
    engine.threads.run(divide_up(shared.stride, kUnitColumns),
                       [&](int64_t unit, int) { add_block(context, tokens, unit); });
  }
  for (int64_t row = 0; row < width; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      request.sketch[row * columns + column] = shared.sums[column * shared.stride + row];
    }
  }
}

}  // namespace foldkv::backend::cpu
