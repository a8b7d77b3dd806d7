#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// How the per-sequence correction of the rebuilt keys is found.
struct CorrectionRules {
  int32_t rank = 0;  // 0: none
  int32_t oversample = 0;
  int32_t iterations = 0;
  uint64_t seed = 0;

  bool operator==(const CorrectionRules&) const = default;
};

// One pass over the key residual E (tokens x width): sketch = E^T (E test); both row-major [width][columns].
using ResidualSketch = std::function<Status(const std::vector<double>& test, int64_t columns, std::vector<double>& sketch)>;

// The columns of the random test matrix, and of every sketch.
[[nodiscard]] int64_t correction_columns(const CorrectionRules& rules, int64_t width);

// Directions that hold most of the residual's energy: a randomized range finder with power iterations (Halko,
// Martinsson, Tropp; methods.md 1.4). Deterministic: signs from a fixed generator and the profile's seed.
// Result: row-major [width][rank], orthonormal columns in falling order of energy.
[[nodiscard]] StatusOr<std::vector<double>> find_correction_basis(const CorrectionRules& rules, int64_t width,
                                                                  const ResidualSketch& residual_sketch);

}  // namespace foldkv
