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

// Room for a tile of latents of up to so many stored coordinates.
struct IntegerLatents {
  uint32_t* words = nullptr;       // [words of the plane][64]
  IntegerScale* groups = nullptr;  // of the plane
  float* scales = nullptr;         // [groups][64]
  int32_t* starts = nullptr;       // [groups][64]

  static IntegerLatents take(Workspace& workspace, int64_t width);
};

// Absent tokens become zeros. Only for planes that take integers.
void decode_integer_latents(const LatentTileRequest& request, const IntegerLatents& latents);

// output [rows][64] = row_start + basis * latents; basis: the first row's integers.
void rebuild_from_integers(const Kernels& kernels, const LatentPlane& plane, const IntegerLatents& latents,
                           const std::byte* basis, int64_t rows, const float* row_start, float* output);

}  // namespace foldkv::backend::cpu
