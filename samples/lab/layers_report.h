#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "samples/lab/value_sensitivities.h"

namespace foldkv_lab {

// What was measured of each layer.
struct LayerFigures {
  ValueSensitivities sensitivities;
  std::vector<double> damages;       // of the layer alone cut to few tokens
  std::vector<double> similarities;  // of keys
};

// {"value_sensitivities", "sensitivity_halves", "importances", "similarities", "rank_correlations"}: what `evaluate
// --layers` reads, and how far one list's order is another's.
[[nodiscard]] nlohmann::json layers_json(const LayerFigures& figures);
// The same in words.
[[nodiscard]] std::string layers_table(const nlohmann::json& report);

}  // namespace foldkv_lab
