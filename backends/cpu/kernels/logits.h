#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/exponential.h"
#include "backends/cpu/kernels/vector.h"

// From products of queries and keys to logits.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

constexpr int kTileVectors = kTile / kLanes;

FOLDKV_INLINE Int load_positions(const int32_t* from) { return (Int)load_words(from); }

FOLDKV_INLINE Float cap_score(Float score, float cap) {
  return broadcast(cap) * hyperbolic_tangent(score / broadcast(cap));
}

// Minus infinity where the key is absent or not visible to the query.
FOLDKV_INLINE Float mask_score(const LogitTile& tile, Float score, int token, int32_t query) {
  const Float hidden = broadcast(-__builtin_inff());
  const Int keys = load_positions(tile.key_positions + token);
  score = keys <= query ? score : hidden;
  if (tile.window > 0 && tile.window <= query) {
    score = keys > static_cast<int32_t>(query - tile.window) ? score : hidden;
  }
  if (token + kLanes > tile.live) {
    Int lane;
    for (int i = 0; i < kLanes; ++i) lane[i] = token + i;
    score = lane < static_cast<int32_t>(tile.live) ? score : hidden;
  }
  return score;
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
