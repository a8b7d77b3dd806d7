#include "samples/lab/layers_report.h"

#include <numeric>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/rank_correlation.h"

namespace foldkv_lab {

nlohmann::json layers_json(const LayerFigures& figures) {
  const ValueSensitivities& sensitivities = figures.sensitivities;
  std::vector<double> index(figures.damages.size());
  std::iota(index.begin(), index.end(), 0.0);
  return {{"value_sensitivities", sensitivities.all},
          {"sensitivity_halves", sensitivities.halves},
          {"importances", figures.damages},
          {"similarities", figures.similarities},
          {"rank_correlations",
           {{"sensitivity_importance", rank_correlation(sensitivities.all, figures.damages)},
            {"sensitivity_halves", rank_correlation(sensitivities.halves[0], sensitivities.halves[1])},
            {"importance_index", rank_correlation(figures.damages, index)},
            {"similarity_importance", rank_correlation(figures.similarities, figures.damages)}}}};
}

std::string layers_table(const nlohmann::json& report) {
  std::string table = absl::StrFormat("%5s %18s %18s %16s\n", "layer", "value noise, KL", "cut alone, KL",
                                      "keys' cosine");
  for (size_t layer = 0; layer < report["importances"].size(); ++layer) {
    absl::StrAppendFormat(&table, "%5d %18.4g %18.4g %16.4f\n", layer,
                          report["value_sensitivities"][layer].get<double>(),
                          report["importances"][layer].get<double>(), report["similarities"][layer].get<double>());
  }
  const nlohmann::json& correlations = report["rank_correlations"];
  absl::StrAppendFormat(
      &table,
      "rank correlation of value noise with cut alone %.3f, of value noise on one half of the texts with the other "
      "%.3f,\nof cut alone with the number of the layer %.3f, with the keys' cosine %.3f\n",
      correlations["sensitivity_importance"].get<double>(), correlations["sensitivity_halves"].get<double>(),
      correlations["importance_index"].get<double>(), correlations["similarity_importance"].get<double>());
  return table;
}

}  // namespace foldkv_lab
