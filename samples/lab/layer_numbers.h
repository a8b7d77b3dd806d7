#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace foldkv_lab {

// What policies want to know of each layer of a model. A list that nobody measured is empty.
struct LayerNumbers {
  std::vector<double> sensitivities;  // RippleKV: divergence when the layer's values are perturbed
  std::vector<double> importances;    // CompressKV: divergence when the layer alone is cut to few tokens
  std::vector<double> similarities;   // EpiCache: of keys with and without the tokens before them

  // The list that a layer allocator (FOLDKV_LAYERS_...) looks at; nullptr: none of these.
  [[nodiscard]] const std::vector<double>* for_allocator(int32_t allocator) const;
};

// From a file that `foldkv-lab layers` wrote. Lists may be absent; one that is there has a finite number for each of
// the model's layers, sensitivities and importances 0 or more.
[[nodiscard]] absl::StatusOr<LayerNumbers> load_layer_numbers(const std::string& path, int64_t layers);

}  // namespace foldkv_lab
