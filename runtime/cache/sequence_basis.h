#pragma once

#include <cstdint>
#include <vector>

#include "backends/interface/backend.h"

namespace foldkv {

// What one side of a group projects on and is rebuilt by, [stacked width][width] each.
struct SequenceBasis {
  std::vector<float> basis;
  std::vector<float> projection;  // empty: the basis
};

// xKV (arXiv 2503.18893; methods.md section 6): the leading right singular vectors V of the stacked rows X = U S V^T of a
// run of exact tokens, which are not centred. Latents are U S. Balanced, for coarse codes: latents are U S^(1/2) turned
// by Hadamard blocks, so that coordinates have like spreads; they are rebuilt by V S^(1/2) turned likewise.
// Directions beyond the rank of X get a spread of 1 and hold nothing. width: coordinates.
[[nodiscard]] StatusOr<SequenceBasis> find_sequence_basis(backend::Backend& backend, const backend::StackedRows& rows,
                                                          int64_t width, bool balanced);

}  // namespace foldkv
