#pragma once

#include <cstdint>

#include "backends/interface/layout.h"

namespace foldkv {

// Adjacent latent coordinates stored with one code and rate; 0 bits: not stored (only at the end of a plane).
struct Band {
  int32_t width = 0;
  int32_t bits = 0;  // uniform: of a coordinate; trellis: of a step
  backend::Code code = backend::Code::kUniform;
  int32_t step = 1;  // trellis: coordinates of a step

  bool operator==(const Band&) const = default;
};

}  // namespace foldkv
