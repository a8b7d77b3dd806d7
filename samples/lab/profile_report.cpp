#include "samples/lab/profile_report.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "samples/lab/command_arguments.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

using Json = nlohmann::json;

constexpr int kFullNumberBytes = 2;

// Shares of the variance in ranges of coordinates that double in width, up to the last coordinate that is stored.
Json energy_ranges(const std::vector<double>& variances, int32_t stored_width, double* kept) {
  const double total = std::accumulate(variances.begin(), variances.end(), 0.0);
  Json ranges = Json::array();
  *kept = 0;
  for (int32_t first = 0, end = 16; first < stored_width; first = end, end *= 2) {
    end = std::min(end, stored_width);
    double sum = 0;
    for (int32_t i = first; i < end; ++i) sum += variances[static_cast<size_t>(i)];
    const double share = total > 0 ? sum / total : 0;
    *kept += share;
    ranges.push_back({{"first", first}, {"end", end}, {"share", share}});
  }
  return ranges;
}

const char* code_name(int32_t code) {
  constexpr const char* kNames[] = {"uniform", "trellis", "half", "asymmetric", "channel"};
  return code >= 0 && code < static_cast<int32_t>(std::size(kNames)) ? kNames[code] : "unknown";
}

absl::StatusOr<Json> report_side(const foldkv::Profile& profile, int32_t plan, int32_t group, int32_t side,
                                 int32_t latent_width) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<foldkv_band> bands, "reading bands",
                              profile.bands(group, side, plan));
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<double> variances, "reading variances", profile.variances(group, side));
  Json band_list = Json::array();
  int32_t stored_width = 0;
  for (const foldkv_band& band : bands) {
    band_list.push_back({{"width", band.width},
                         {"bits", static_cast<double>(band.bits) / band.step},
                         {"code", code_name(band.code)}});
    if (band.bits > 0) stored_width += band.width;
  }
  double kept = 0;
  Json ranges = energy_ranges(variances, stored_width, &kept);
  return Json{{"latent_width", latent_width},
              {"stored_width", stored_width},
              {"bands", band_list},
              {"energy_kept", kept},
              {"energy", ranges}};
}

absl::StatusOr<Json> report_group(const foldkv::Profile& profile, int32_t plan, int32_t group) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_group_info info, "reading a group", profile.group(group, plan));
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<int32_t> layers, "reading layers", profile.layers(group));
  LAB_ASSIGN_OR_RETURN(Json keys, report_side(profile, plan, group, FOLDKV_KEYS, info.key_latent_width));
  LAB_ASSIGN_OR_RETURN(Json values, report_side(profile, plan, group, FOLDKV_VALUES, info.value_latent_width));
  const int64_t full_bytes = int64_t{2} * info.layer_count * info.key_width * kFullNumberBytes;
  return Json{{"layers", layers},
              {"key_width", info.key_width},
              {"keys", keys},
              {"values", values},
              {"scale_group", info.scale_group},
              {"rotated", info.rotated != 0},
              {"correction_rank", info.correction_rank},
              {"bytes_per_token", info.bytes_per_token},
              {"bytes_per_sequence", info.bytes_per_sequence},
              {"full_bytes_per_token", full_bytes}};
}

double ratio_of(int64_t full, int64_t bytes) {
  return static_cast<double>(full) / static_cast<double>(std::max<int64_t>(bytes, 1));
}

absl::StatusOr<Json> report_plans(const foldkv::Profile& profile, int32_t count) {
  Json plans = Json::array();
  for (int32_t index = 0; index < count; ++index) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_plan_info info, "reading a plan", profile.plan_info(index));
    plans.push_back({{"name", info.name},
                     {"bytes_per_token", info.bytes_per_token},
                     {"ratio", ratio_of(info.full_bytes_per_token, info.bytes_per_token)},
                     {"expected_cost", info.expected_cost}});
    if (info.held_out_tokens == 0) continue;
    plans.back()["held_out_divergence"] = info.held_out_divergence;
    plans.back()["held_out_tokens"] = info.held_out_tokens;
  }
  return plans;
}

absl::StatusOr<int32_t> find_plan(const Json& plans, const std::string& name) {
  std::vector<std::string> known;
  for (size_t index = 0; index < plans.size(); ++index) {
    known.push_back(plans[index]["name"].get<std::string>());
    if (name.empty() || known.back() == name) return static_cast<int32_t>(index);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--plan: got \"", name, "\", the profile has: ", absl::StrJoin(known, ", ")));
}

std::string band_text(const Json& bands) {
  std::vector<std::string> parts;
  for (const Json& band : bands) {
    parts.push_back(absl::StrCat(band["width"].get<int>(), "x", band["bits"].get<double>()));
  }
  return absl::StrJoin(parts, ",");
}

std::string side_row(const std::string& start, const char* name, const Json& side) {
  std::vector<std::string> shares;
  for (const Json& range : side["energy"]) {
    shares.push_back(absl::StrFormat("%d:%.1f", range["end"].get<int>(), 100 * range["share"].get<double>()));
  }
  // What was not calibrated knows of no energy.
  const double kept = side["energy_kept"].get<double>();
  return absl::StrFormat("%-12s %-7s %6d  %-22s %6s  %s\n", start, name, side["stored_width"].get<int>(),
                         band_text(side["bands"]), kept > 0 ? absl::StrFormat("%.2f", 100 * kept) : "-",
                         kept > 0 ? absl::StrJoin(shares, " ") : "");
}

}  // namespace

std::string layer_text(const Json& layers) {
  const std::vector<int> numbers = layers.get<std::vector<int>>();
  const bool adjacent = numbers.back() - numbers.front() + 1 == static_cast<int>(numbers.size());
  return adjacent && numbers.size() > 1 ? absl::StrCat(numbers.front(), "-", numbers.back())
                                        : absl::StrJoin(numbers, ",");
}

absl::StatusOr<nlohmann::json> report_profile(const foldkv::Profile& profile, const std::string& plan) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_profile_info info, "reading the profile", profile.info());
  LAB_ASSIGN_OR_RETURN(const Json plans, report_plans(profile, info.plan_count));
  LAB_ASSIGN_OR_RETURN(const int32_t chosen, find_plan(plans, plan));
  Json groups = Json::array();
  int64_t bytes_per_token = 0;
  int64_t bytes_per_sequence = 0;
  int64_t full_bytes_per_token = 0;
  for (int32_t group = 0; group < info.group_count; ++group) {
    LAB_ASSIGN_OR_RETURN(Json report, report_group(profile, chosen, group));
    bytes_per_token += report["bytes_per_token"].get<int64_t>();
    bytes_per_sequence += report["bytes_per_sequence"].get<int64_t>();
    full_bytes_per_token += report["full_bytes_per_token"].get<int64_t>();
    groups.push_back(std::move(report));
  }
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<int32_t> sources, "reading the layers' sources", profile.sources());
  return Json{{"model_name", info.model_name},
              {"made_by", info.made_by},
              {"model_fingerprint", absl::StrFormat("%016x", info.model_fingerprint)},
              {"fingerprint", absl::StrFormat("%016x", info.fingerprint)},
              {"layer_count", info.layer_count},
              {"centred", info.centred != 0},
              {"calibration_samples", info.calibration_samples},
              {"calibration_tokens", info.calibration_tokens},
              {"shrinkage", info.shrinkage},
              {"groups", groups},
              {"plans", plans},
              {"sources", sources},
              {"plan", plans[static_cast<size_t>(chosen)]["name"]},
              {"bytes_per_token", bytes_per_token},
              {"bytes_per_sequence", bytes_per_sequence},
              {"full_bytes_per_token", full_bytes_per_token},
              {"ratio", ratio_of(full_bytes_per_token, bytes_per_token)}};
}

std::string profile_summary(const nlohmann::json& report) {
  std::string summary = absl::StrFormat(
      "%s; %d layers in %d groups, %s, from %d rows of %d samples; made by %s\n"
      "%d bytes per token instead of %d in 16 bit: %.2f times smaller; %s per sequence\n",
      report["model_name"].get<std::string>(), report["layer_count"].get<int>(), report["groups"].size(),
      report["centred"].get<bool>() ? "centred" : "not centred", report["calibration_tokens"].get<int64_t>(),
      report["calibration_samples"].get<int64_t>(), report["made_by"].get<std::string>(),
      report["bytes_per_token"].get<int64_t>(), report["full_bytes_per_token"].get<int64_t>(),
      report["ratio"].get<double>(), byte_text(report["bytes_per_sequence"].get<double>()));
  const double shrinkage = report["shrinkage"].get<double>();
  if (shrinkage > 0.0) {
    absl::StrAppendFormat(&summary,
                          "made from few rows: up to %.0f%% of a covariance is the same in all directions; more text "
                          "makes a better profile\n",
                          100 * shrinkage);
  }
  return summary;
}

std::string plan_table(const nlohmann::json& report) {
  const Json& plans = report["plans"];
  std::string table;
  if (plans.size() < 2 && !plans[0].contains("held_out_tokens")) return table;
  for (const Json& plan : plans) {
    absl::StrAppendFormat(&table, "plan %-10s %6d bytes per token, %6.2f times smaller, expected cost %.3g",
                          plan["name"].get<std::string>(), plan["bytes_per_token"].get<int64_t>(),
                          plan["ratio"].get<double>(), plan["expected_cost"].get<double>());
    if (plan.contains("held_out_tokens")) {
      absl::StrAppendFormat(&table, ", KL %.4f nats on %d tokens held out", plan["held_out_divergence"].get<double>(),
                            plan["held_out_tokens"].get<int64_t>());
    }
    table += "\n";
  }
  return table;
}

std::string profile_table(const nlohmann::json& report) {
  std::string table = plan_table(report);
  if (report["plans"].size() > 1) absl::StrAppend(&table, "bands of plan ", report["plan"].get<std::string>(), ":\n");
  const std::vector<int> sources = report["sources"].get<std::vector<int>>();
  for (size_t layer = 0; layer < sources.size(); ++layer) {
    if (sources[layer] == static_cast<int>(layer)) continue;
    table += absl::StrFormat("layer %d reads the keys and values of layer %d\n", layer, sources[layer]);
  }
  table += absl::StrFormat("%-12s %-7s %6s  %-22s %6s  %s\n", "layers", "side", "width", "bands", "kept %",
                           "% of the energy up to coordinate");
  for (const Json& group : report["groups"]) {
    table += side_row(layer_text(group["layers"]), "keys", group["keys"]);
    table += side_row(absl::StrCat(group["bytes_per_token"].get<int64_t>(), " B/token"), "values", group["values"]);
  }
  return table;
}

}  // namespace foldkv_lab
