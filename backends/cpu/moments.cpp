#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/latents.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

// Tiles of the product, whose sums and operands stay in the caches. A tile's rows are a multiple of what kernels hold
// in registers.
constexpr int64_t kTileRows = 48;
constexpr int64_t kTileColumns = 64;
constexpr int64_t kTokens = 64;
constexpr int64_t kSumColumns = 128;

struct TilePlace {
  int64_t row = 0;
  int64_t column = 0;
};

int64_t column_tiles(int64_t row_tile, int64_t width) {
  const int64_t last_row = std::min((row_tile + 1) * kTileRows, width) - 1;
  return last_row / kTileColumns + 1;
}

// Numbers [first, first + count) of rows, in double precision and padded with zeros to `width`.
void widen(const Kernels& kernels, const MomentsRequest& request, int64_t token, int64_t tokens, int64_t first,
           int64_t width, double* output) {
  const int64_t count = std::min(width, request.width - first);
  for (int64_t row = 0; row < tokens; ++row) {
    kernels.to_f64(request.rows + (token + row) * request.width + first, count, output + row * width);
    std::fill(output + row * width + count, output + (row + 1) * width, 0.0);
  }
}

void add_tile(const Kernels& kernels, const MomentsRequest& request, TilePlace place) {
  alignas(64) double left[kTokens * kTileRows];
  alignas(64) double right[kTokens * kTileColumns];
  alignas(64) double sums[kTileRows * kTileColumns] = {};
  for (int64_t token = 0; token < request.count; token += kTokens) {
    const int64_t tokens = std::min(kTokens, request.count - token);
    widen(kernels, request, token, tokens, place.row, kTileRows, left);
    widen(kernels, request, token, tokens, place.column, kTileColumns, right);
    kernels.outer_sum({.tokens = tokens,
                       .rows = kTileRows,
                       .columns = kTileColumns,
                       .left = left,
                       .left_stride = kTileRows,
                       .right = right,
                       .right_stride = kTileColumns,
                       .sum = sums,
                       .sum_stride = kTileColumns});
  }
  for (int64_t i = 0; i < std::min(kTileRows, request.width - place.row); ++i) {
    const int64_t row = place.row + i;
    for (int64_t j = 0; j < kTileColumns && place.column + j <= row; ++j) {
      request.products[row * request.width + place.column + j] += sums[i * kTileColumns + j];
    }
  }
}

void add_sums(const Kernels& kernels, const MomentsRequest& request, int64_t first) {
  const int64_t columns = std::min(kSumColumns, request.width - first);
  double sums[kSumColumns] = {};
  for (int64_t token = 0; token < request.count; ++token) {
    kernels.add_in_double(request.rows + token * request.width + first, columns, sums);
  }
  for (int64_t column = 0; column < columns; ++column) request.sum[first + column] += sums[column];
}

}  // namespace

void moments(const Engine& engine, const MomentsRequest& request) {
  const int64_t sum_units = divide_up(request.width, kSumColumns);
  const int64_t row_tiles = divide_up(request.width, kTileRows);
  int64_t tiles = 0;
  for (int64_t row_tile = 0; row_tile < row_tiles; ++row_tile) tiles += column_tiles(row_tile, request.width);
  engine.threads.run(tiles + sum_units, [&](int64_t unit, int) {
    if (unit < sum_units) return add_sums(engine.kernels, request, unit * kSumColumns);
    int64_t tile = unit - sum_units;
    int64_t row_tile = 0;
    for (; tile >= column_tiles(row_tile, request.width); ++row_tile) tile -= column_tiles(row_tile, request.width);
    add_tile(engine.kernels, request, {row_tile * kTileRows, tile * kTileColumns});
  });
}

}  // namespace foldkv::backend::cpu
