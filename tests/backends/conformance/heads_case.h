#pragma once

#include <cstdint>
#include <vector>

#include "backends/interface/operations.h"
#include "tests/backends/conformance/table.h"

namespace foldkv::test {

// What prepare_heads and prepare_rotation are asked to do together.
struct HeadsCase {
  NumberFormat format = NumberFormat::kF32;
  int64_t heads = 1;
  int64_t head_size = 1;
  int64_t padding = 0;  // between rows of the input
  bool norm = false;
  int64_t frequency_count = 0;
  backend::Pairing pairing = backend::Pairing::kHalfSplit;
  double rotation_scale = 1.0;
  std::vector<int32_t> positions;  // one for each row
  double size = 1.0;               // of the input's numbers
};

// Of base 10000.
[[nodiscard]] std::vector<double> inverse_frequencies(int64_t count);

[[nodiscard]] Outcome run_heads(const HeadsCase& heads_case, backend::Backend& backend, std::byte fill);

}  // namespace foldkv::test
