#include "samples/lab/sensitivity_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/profile_report.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

using Json = nlohmann::json;

// Null where nothing was measured.
absl::StatusOr<Json> figure_of(const foldkv::Profile& profile, int32_t layer, int32_t side) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_layer_sensitivity figures, "reading sensitivities",
                              profile.sensitivity(layer, side));
  if (figures.examples == 0) return Json();
  return Json{{"kl", figures.divergence}, {"rows", figures.rows}, {"examples", figures.examples}};
}

std::string kl_text(const Json& figure) {
  return figure.is_null() ? absl::StrFormat("%12s", "-") : absl::StrFormat("%12.4g", figure["kl"].get<double>());
}

}  // namespace

absl::StatusOr<Json> report_sensitivity(const foldkv::Profile& profile) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_profile_info info, "reading the profile", profile.info());
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_sensitivity_source source, "reading sensitivities",
                              profile.sensitivity_source());
  Json layers = Json::array();
  for (int32_t layer = 0; layer < info.layer_count; ++layer) {
    LAB_ASSIGN_OR_RETURN(Json keys, figure_of(profile, layer, FOLDKV_KEYS));
    LAB_ASSIGN_OR_RETURN(Json values, figure_of(profile, layer, FOLDKV_VALUES));
    layers.push_back({{"layer", layer}, {"keys", std::move(keys)}, {"values", std::move(values)}});
  }
  return Json{{"scale", source.scale}, {"seed", source.seed}, {"text", source.text}, {"layers", layers}};
}

absl::StatusOr<Json> report_groups(const foldkv::Profile& profile, int32_t plan, const std::vector<double>& measured) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<double> weights, "weighing groups",
                              profile.group_weights(plan, measured));
  Json groups = Json::array();
  for (size_t group = 0; 2 * group < measured.size(); ++group) {
    const auto index = static_cast<int32_t>(group);
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_group_info info, "reading a group", profile.group(index, plan));
    LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<int32_t> layers, "reading layers", profile.layers(index));
    const auto side = [&](size_t place, double expected) {
      return Json{{"measured", measured[place]}, {"expected", expected}, {"weight", weights[place]}};
    };
    groups.push_back({{"layers", layers},
                      {"keys", side(2 * group, info.expected_key_cost)},
                      {"values", side(2 * group + 1, info.expected_value_cost)}});
  }
  return groups;
}

std::string sensitivity_table(const Json& report) {
  double largest = 0;
  for (const Json& layer : report["layers"]) {
    if (!layer["values"].is_null()) largest = std::max(largest, layer["values"]["kl"].get<double>());
  }
  std::string table =
      absl::StrFormat("%5s %12s %12s  %s\n", "layer", "keys, KL", "values, KL", "values against the largest");
  for (const Json& layer : report["layers"]) {
    table += absl::StrFormat("%5d %s %s", layer["layer"].get<int>(), kl_text(layer["keys"]), kl_text(layer["values"]));
    if (!layer["values"].is_null() && largest > 0) {
      table += absl::StrFormat("  %.3f", layer["values"]["kl"].get<double>() / largest);
    }
    table += "\n";
  }
  return table;
}

std::string groups_table(const Json& report) {
  std::string table =
      absl::StrFormat("%-7s %-7s %12s %14s %10s\n", "layers", "side", "measured, KL", "expected cost", "weight");
  for (const Json& group : report) {
    for (const char* side : {"keys", "values"}) {
      const Json& figures = group[side];
      table += absl::StrFormat("%-7s %-7s %12.4g %14.4g %10.3f\n", layer_text(group["layers"]), side,
                               figures["measured"].get<double>(), figures["expected"].get<double>(),
                               figures["weight"].get<double>());
    }
  }
  return table;
}

}  // namespace foldkv_lab
