#pragma once

#include <cstdint>
#include <vector>

#include "foldkv/foldkv.hpp"

namespace foldkv_lab {

// How a sequence evicts tokens, with the arrays that the library's struct only points to.
struct Eviction {
  foldkv_eviction settings = foldkv::init<foldkv_eviction>();  // its pointers to the arrays below are not read
  std::vector<double> layer_numbers;    // of each layer, or empty
  std::vector<int32_t> exempt_layers;   // that keep all tokens; empty: those with a sliding window

  // As the library takes it. Lasts as long as this object stays as it is.
  [[nodiscard]] foldkv_eviction view() const;
};

}  // namespace foldkv_lab
