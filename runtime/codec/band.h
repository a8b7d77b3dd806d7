#pragma once

#include <cstdint>

namespace foldkv {

// Adjacent latent coordinates stored with one bit width; 0: not stored (only at the end of a plane).
struct Band {
  int32_t width = 0;
  int32_t bits = 0;

  bool operator==(const Band&) const = default;
};

}  // namespace foldkv
