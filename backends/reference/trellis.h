#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/interface/layout.h"
#include "backends/interface/trellis.h"
#include "backends/reference/scratch.h"
#include "runtime/base/status.h"

// The trellis code of one token, see backends/interface/trellis.h.
namespace foldkv::backend::reference {

// One step of a run: its numbers in units of scale / kTrellisUnit, and what was chosen for it.
struct TrellisStep {
  int32_t bits = 0;
  int32_t count = 0;  // coordinates; a last step may have fewer than others
  const int8_t (*table)[kTrellisWindows] = nullptr;
  int32_t numbers[2] = {};
  int32_t window = 0;
};

struct TrellisArrays {
  TrellisStep* steps = nullptr;  // [trellis width]
  uint8_t* before = nullptr;     // [trellis width][256]: the window before each window
  int64_t* costs = nullptr;      // [2][256]

  static TrellisArrays place(Scratch& scratch, int64_t trellis_width);
};

// Quantizes the run's coordinates of latent [plane.stored_width] into the token's rows of codes and scales.
// Numeric error when a number is not finite or a scale beyond its grid.
[[nodiscard]] Status encode_trellis(std::span<const ScaleGroup> run, const float* latent, const TrellisArrays& arrays,
                                    std::byte* codes, std::byte* scales);

// latent [plane.stored_width]: the coordinates of one group.
void decode_trellis(const ScaleGroup& group, const std::byte* codes, const std::byte* scales, double* latent);

}  // namespace foldkv::backend::reference
