#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/exponential.h"
#include "backends/cpu/kernels/logits.h"
#include "backends/cpu/kernels/vector.h"

// One softmax over tiles and parts: running maximum, running sum, weighted sums that follow the maximum.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

FOLDKV_INLINE float exponential_of(float x) { return exponential(broadcast(x))[0]; }

FOLDKV_INLINE void softmax_row(const SoftmaxTile& tile, int64_t row, bool masked) {
  float* scores = tile.scores + row * kTile;
  Float values[kTileVectors];
  FOLDKV_UNROLL for (int v = 0; v < kTileVectors; ++v) {
    values[v] = load(scores + v * kLanes) * broadcast(tile.logits.scale);
    if (tile.logits.soft_cap > 0.0f) values[v] = cap_score(values[v], tile.logits.soft_cap);
    if (masked) values[v] = mask_score(tile.logits, values[v], v * kLanes, tile.query_positions[row]);
  }
  Float largest = values[0];
  FOLDKV_UNROLL for (int v = 1; v < kTileVectors; ++v) largest = maximum(largest, values[v]);
  const float tile_maximum = maximum_of_lanes(largest);
  tile.factors[row] = 1.0f;
  if (tile_maximum == -__builtin_inff()) {  // nothing visible: the row stays as it is
    FOLDKV_UNROLL for (int v = 0; v < kTileVectors; ++v) store(scores + v * kLanes, Float{});
    return;
  }
  const float before = tile.maxima[row];
  const float now = before > tile_maximum ? before : tile_maximum;
  Float sum = {};
  FOLDKV_UNROLL for (int v = 0; v < kTileVectors; ++v) {
    const Float weight = exponential(values[v] - broadcast(now));
    store(scores + v * kLanes, weight);
    sum += weight;
  }
  if (before != now) {
    tile.factors[row] = exponential_of(before - now);
    tile.maxima[row] = now;
  }
  const float tile_sum = sum_of_lanes(sum);
  tile.sums[row] = multiply_add(broadcast(tile.sums[row]), broadcast(tile.factors[row]), broadcast(tile_sum))[0];
}

void softmax_tile(const SoftmaxTile& tile) {
  const bool masked = !tile.logits.all_visible || tile.logits.live < kTile;
  for (int64_t row = 0; row < tile.rows; ++row) {
    if (masked) {
      softmax_row(tile, row, true);
    } else {
      softmax_row(tile, row, false);
    }
  }
}

void merge_row(const MergeRow& row) {
  const Float total_factor = broadcast(row.total_factor);
  const Float part_factor = broadcast(row.part_factor);
  for (int64_t i = 0; i < row.width; i += kLanes) {
    const Float scaled = load(row.total + i) * total_factor;
    store(row.total + i, multiply_add(load(row.part + i), part_factor, scaled));
  }
}

void finish_row(const FinishRow& row) {
  for (int64_t i = 0; i < row.width; ++i) {
    float value = row.exact[i];
    if (row.rebuilt != nullptr) value += row.rebuilt[i];
    if (row.mean != nullptr) {
      value = multiply_add(broadcast(row.mean[i]), broadcast(row.latent_mass), broadcast(value))[0];
    }
    row.output[i] = value / row.sum;
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
