#pragma once

#include <cstdint>

#include "backends/cpu/attend_inputs.h"
#include "backends/cpu/integer_tile.h"
#include "backends/cpu/latent_tile.h"
#include "backends/cpu/query_unit.h"
#include "backends/cpu/region.h"
#include "backends/cpu/workspace.h"

// Rotated keys of a tile, head by head, from exact or latent pages.
namespace foldkv::backend::cpu {

struct KeyTile {
  TileSlots slots;
  int32_t positions[kTile];
  PositionRange range;
};

// The tile that begins at slot `first` of a region that ends at `end`.
[[nodiscard]] KeyTile key_tile(const PositionRegion& positions, int64_t first, int64_t end);

struct KeyScratch {
  float* latents = nullptr;       // [key latents][64]
  float* coefficients = nullptr;  // [rank][64]
  float* correction = nullptr;    // [head size][rank]
  float* mean = nullptr;          // [head size]
  float* cosines = nullptr;       // [pairs][64]
  float* sines = nullptr;
  float* rotation = nullptr;
  LatentScratch latent;
  IntegerLatents integers;        // instead of latents

  static KeyScratch take(Workspace& workspace, const AttendGeometry& geometry);
};

// How scores of the tile's keys and a unit's queries become logits.
[[nodiscard]] LogitTile logit_tile(const AttendInputs& inputs, const UnitQueries& unit, const KeyTile& tile);

// Writes the angles of a tile, which the keys of all its heads are rotated by.
void find_angles(const AttendInputs& inputs, const KeyTile& tile, const KeyScratch& scratch);
// Decodes a tile's latents and coefficients, which the keys of all its heads are rebuilt from.
void decode_keys(const AttendInputs& inputs, const LatentRegion& region, const KeyTile& tile, KeyScratch& scratch);

// keys [head size][64] of one KV head of the layer.
void load_exact_keys(const AttendInputs& inputs, const AttendSequence& sequence, const KeyTile& tile, int64_t head,
                     const KeyScratch& scratch, float* keys);
void load_latent_keys(const AttendInputs& inputs, const AttendSequence& sequence, int64_t head,
                      const KeyScratch& scratch, float* keys);

// Rows of one side of one KV head of the layer, in the exact pages of a view; null beyond the tile.
void exact_head_rows(const AttendInputs& inputs, const AttendSequence& sequence, Side side, const KeyTile& tile,
                     int64_t head, const std::byte* (&rows)[kTile]);

}  // namespace foldkv::backend::cpu
