#pragma once

#include <cstdint>

#include "backends/cpu/kernels.h"
#include "backends/cpu/latent_tile.h"
#include "backends/cpu/workspace.h"

// Fast arithmetic: latents and bases as integers of 8 bits.
namespace foldkv::backend::cpu {

// Whether the latents of a plane are rebuilt in integers: uniform and trellis codes in scale groups that are not too
// short, with 5.5 bits per stored coordinate at most, so that the error of the basis stays below that of the codes.
[[nodiscard]] bool takes_integers(const LatentPlane& plane);

// Rows of a basis as integers, each with one scale: Backend::prepare_fast_basis.
[[nodiscard]] int64_t integer_row_bytes(int64_t width);
void make_integer_basis(const Kernels& kernels, const float* basis, int64_t rows, int64_t width, std::byte* output);

// Room for a tile of latents of up to so many stored coordinates, and what is in it.
struct IntegerLatents {
  uint32_t* words = nullptr;       // [words of the plane][64]
  IntegerScale* groups = nullptr;  // [group_count]
  float* scales = nullptr;         // [group_count][64]
  int32_t* starts = nullptr;       // [group_count][64]
  int64_t group_count = 0;

  static IntegerLatents take(Workspace& workspace, int64_t width);
};

// Absent tokens become zeros. Only for planes that take integers.
void decode_integer_latents(const LatentTileRequest& request, IntegerLatents& latents);

struct IntegerRebuild {
  const std::byte* basis = nullptr;  // integers of the first row
  int64_t width = 0;                 // of the basis
  int64_t rows = 0;
  const float* row_start = nullptr;  // [rows]; null: zeros
  float* output = nullptr;           // [rows][64] = row_start + basis * latents
};
void rebuild_from_integers(const Kernels& kernels, const IntegerLatents& latents, const IntegerRebuild& rebuild);

}  // namespace foldkv::backend::cpu
