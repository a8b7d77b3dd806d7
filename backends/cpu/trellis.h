#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/kernels.h"
#include "backends/cpu/workspace.h"
#include "backends/interface/layout.h"

// The trellis code, from latents in rows to bytes in pages.
namespace foldkv::backend::cpu {

// Tables of a rate for the encoder, integers, and for the decoder, in units of the scale: [step][256].
[[nodiscard]] const float* trellis_integers(const ScaleGroup& group);
[[nodiscard]] const float* trellis_values(const ScaleGroup& group);

struct TrellisScratch {
  TrellisGroup* groups = nullptr;  // of the longest run
  float* numbers = nullptr;        // [trellis width][16]
  float* costs = nullptr;          // [2][256][16]
  uint8_t* choices = nullptr;      // [trellis width][128][16]
  uint8_t* windows = nullptr;      // [trellis width][16]

  static TrellisScratch take(Workspace& workspace, int64_t trellis_width);
};

// Where the rows of codes and of scales of a token are.
struct TokenBytes {
  uint8_t* codes = nullptr;
  uint8_t* scales = nullptr;
};

// Quantizes the run's coordinates of up to 16 tokens: latents [tokens][stride]. False: a number is not finite or a
// scale beyond its grid.
[[nodiscard]] bool encode_trellis(const Kernels& kernels, std::span<const ScaleGroup> run, const float* latents,
                                  int64_t stride, std::span<const TokenBytes> tokens, const TrellisScratch& scratch);

}  // namespace foldkv::backend::cpu
