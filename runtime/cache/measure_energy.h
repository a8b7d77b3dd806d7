#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/interface/backend.h"
#include "runtime/calibration/expected_energy.h"

namespace foldkv {

// One side of a layer group's run of tokens, as it was encoded.
struct EncodedRows {
  backend::StackedRows rows;
  const backend::LatentLayout* layout = nullptr;
  backend::LatentRegion region;
  int64_t first_latent_slot = 0;  // of the run
  const float* basis = nullptr;   // stacked
  std::byte* workspace = nullptr; // of the backend's latent operations
  std::byte* scratch = nullptr;   // energy_scratch_bytes()
};

// Of measure_energy, for rows of that many numbers.
[[nodiscard]] int64_t energy_scratch_bytes(int64_t stacked_width);

// How far rebuilt rows are from the rows themselves, and those from the mean. Measured on 64 tokens at most, in
// stretches of 8 that are evenly spread over the run, and scaled to all of its tokens. Takes no memory but its scratch.
// It is for statistics: when a figure is beyond all numbers, the run counts nothing.
[[nodiscard]] StatusOr<SideEnergy> measure_energy(backend::Backend& backend, const EncodedRows& encoded);

}  // namespace foldkv
