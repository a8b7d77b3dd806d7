#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cache/sequence.h"

namespace foldkv {

// What one side of a group projects on and is rebuilt by, [stacked width][width] each.
struct SequenceBasis {
  std::vector<float> basis;
  std::vector<float> projection;  // empty: the basis
};

struct SequenceBasisQuestion {
  const std::vector<int32_t>& layers;  // of the group
  backend::Side side = backend::Side::kKeys;
  int64_t first_slot = 0;  // of the exact regions
  int64_t count = 0;       // tokens, 1 or more
  int64_t width = 0;       // coordinates
  bool balanced = false;
};

// xKV (arXiv 2503.18893; methods.md section 6): the leading right singular vectors V of the stacked rows X = U S V^T of a
// run of exact tokens, which are not centred. Latents are U S. Balanced, for coarse codes: latents are U S^(1/2) turned
// by Hadamard blocks, so that coordinates have like spreads; they are rebuilt by V S^(1/2) turned likewise.
// Directions beyond the rank of X get a spread of 1 and hold nothing.
[[nodiscard]] StatusOr<SequenceBasis> find_sequence_basis(const Sequence& sequence,
                                                          const SequenceBasisQuestion& question);

}  // namespace foldkv
