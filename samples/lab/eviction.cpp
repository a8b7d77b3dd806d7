#include "samples/lab/eviction.h"

namespace foldkv_lab {

foldkv_eviction Eviction::view() const {
  foldkv_eviction result = settings;
  result.layer_numbers = layer_numbers.empty() ? nullptr : layer_numbers.data();
  result.layer_number_count = static_cast<int32_t>(layer_numbers.size());
  result.exempt_layers = exempt_layers.empty() ? nullptr : exempt_layers.data();
  result.exempt_layer_count = static_cast<int32_t>(exempt_layers.size());
  return result;
}

}  // namespace foldkv_lab
