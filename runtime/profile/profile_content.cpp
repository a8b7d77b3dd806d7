#include "runtime/profile/profile_content.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/check_range.h"
#include "runtime/base/fingerprint.h"
#include "runtime/model/limits.h"
#include "runtime/profile/bands.h"
#include "runtime/profile/content_error.h"
#include "runtime/profile/limits.h"

namespace foldkv {
namespace {

constexpr char kFingerprintRules[] = "foldkv profile 1";

// Exactly `expected` numbers, all finite.
template <typename Number>
Status check_numbers(absl::string_view field, const std::vector<Number>& numbers, int64_t expected) {
  if (std::ssize(numbers) != expected) {
    return content_error(field, absl::StrCat(numbers.size(), " numbers"), expected);
  }
  const auto bad = std::find_if(numbers.begin(), numbers.end(), [](Number number) { return !std::isfinite(number); });
  if (bad == numbers.end()) return absl::OkStatus();
  return content_error(absl::StrCat(field, "[", bad - numbers.begin(), "]"), *bad, "a finite number");
}

Status check_variances(absl::string_view field, const std::vector<double>& variances, int64_t stacked_width) {
  FOLDKV_RETURN_IF_ERROR(check_numbers(field, variances, stacked_width));
  for (size_t index = 0; index < variances.size(); ++index) {
    if (variances[index] < 0.0) {
      return content_error(absl::StrCat(field, "[", index, "]"), variances[index], "0 or more");
    }
    if (index > 0 && variances[index] > variances[index - 1]) {
      return content_error(absl::StrCat(field, "[", index, "]"), variances[index],
                           absl::StrCat(variances[index - 1], ", the one before, at most"));
    }
  }
  return absl::OkStatus();
}

// Latents of a kind without a basis in the profile have a width of their own.
Status check_basis(const std::string& field, const ProfileSide& side, const ProfileGroup& group) {
  const int64_t stacked_width = group.stacked_width();
  if (group.kind == GroupKind::kLearned) {
    return check_numbers(absl::StrCat(field, ".basis"), side.basis, stacked_width * side.latent_width);
  }
  FOLDKV_RETURN_IF_ERROR(check_numbers(absl::StrCat(field, ".basis"), side.basis, 0));
  FOLDKV_RETURN_IF_ERROR(check_numbers(absl::StrCat(field, ".projection"), side.projection, 0));
  if (group.kind == GroupKind::kSequence) return absl::OkStatus();
  const int64_t expected = group.kind == GroupKind::kRows ? stacked_width : group.key_width;
  if (side.latent_width == expected) return absl::OkStatus();
  return content_error(absl::StrCat(field, ".latent_width"), side.latent_width, expected);
}

Status check_gains(absl::string_view field, const std::vector<double>& gains, int64_t stacked_width) {
  if (gains.empty()) return absl::OkStatus();
  FOLDKV_RETURN_IF_ERROR(check_numbers(field, gains, stacked_width));
  const auto bad = std::find_if(gains.begin(), gains.end(), [](double gain) { return gain < 0.0; });
  if (bad == gains.end()) return absl::OkStatus();
  return content_error(absl::StrCat(field, "[", bad - gains.begin(), "]"), *bad, "0 or more");
}

Status check_side(const std::string& field, const ProfileSide& side, const ProfileGroup& group, bool centred) {
  const int64_t stacked_width = group.stacked_width();
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".latent_width"), side.latent_width, 1, stacked_width));
  FOLDKV_RETURN_IF_ERROR(check_basis(field, side, group));
  if (!side.projection.empty()) {
    FOLDKV_RETURN_IF_ERROR(
        check_numbers(absl::StrCat(field, ".projection"), side.projection, stacked_width * side.latent_width));
  }
  FOLDKV_RETURN_IF_ERROR(check_numbers(absl::StrCat(field, ".mean"), side.mean, stacked_width));
  const auto shift = std::find_if(side.mean.begin(), side.mean.end(), [](float number) { return number != 0.0f; });
  if (!centred && shift != side.mean.end()) {
    return content_error(absl::StrCat(field, ".mean[", shift - side.mean.begin(), "]"), *shift,
                         "0 in a profile that is not centred");
  }
  FOLDKV_RETURN_IF_ERROR(check_variances(absl::StrCat(field, ".variances"), side.variances, stacked_width));
  return check_gains(absl::StrCat(field, ".gains"), side.gains, stacked_width);
}

Status check_correction(const std::string& field, const CorrectionRules& rules, int64_t stacked_width) {
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".rank"), rules.rank, 0, stacked_width));
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".oversample"), rules.oversample, 0, kMaxWidth));
  return check_range(absl::StrCat(field, ".iterations"), rules.iterations, 0, kMaxCorrectionIterations);
}

// Marks the group's layers as taken.
Status check_layers(const std::string& field, const std::vector<int32_t>& layers, std::vector<bool>& taken) {
  if (layers.empty()) return content_error(field, "none", "1 or more");
  for (size_t index = 0; index < layers.size(); ++index) {
    const std::string name = absl::StrCat(field, "[", index, "]");
    FOLDKV_RETURN_IF_ERROR(check_range(name, layers[index], 0, std::ssize(taken) - 1));
    if (index > 0 && layers[index] <= layers[index - 1]) {
      return content_error(name, layers[index], absl::StrCat("more than ", layers[index - 1], ", the one before"));
    }
    if (taken[static_cast<size_t>(layers[index])]) {
      return content_error(name, layers[index], "a layer that is in no other group");
    }
    taken[static_cast<size_t>(layers[index])] = true;
  }
  return absl::OkStatus();
}

Status check_merge(const std::string& field, const ProfileGroup& group) {
  const MergeRules& rules = group.merge;
  if (group.kind != GroupKind::kMerged) {
    return rules == MergeRules() ? absl::OkStatus() : content_error(field, "rules", "none for groups of other kinds");
  }
  constexpr size_t kMergedLayers = 2;
  if (group.layers.size() != kMergedLayers) {
    return content_error(field, absl::StrCat(group.layers.size(), " layers"), kMergedLayers);
  }
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".heads"), rules.heads, 1, kMaxWidth));
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".head_size"), rules.head_size, 1, kMaxWidth));
  if (int64_t{rules.heads} * rules.head_size != group.key_width) {
    return content_error(field, absl::StrCat(rules.heads, " heads of ", rules.head_size), group.key_width);
  }
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".retained"), rules.retained, 0, kLatentPageTokens));
  if (rules.interpolation >= 0.0f && rules.interpolation <= 1.0f) return absl::OkStatus();
  return content_error(absl::StrCat(field, ".interpolation"), rules.interpolation, "0 to 1");
}

Status check_kind(const std::string& field, const ProfileGroup& group) {
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".kind"), static_cast<int64_t>(group.kind), 0,
                                     static_cast<int64_t>(GroupKind::kMerged)));
  if (group.kind != GroupKind::kLearned && group.correction.rank > 0) {
    return content_error(absl::StrCat(field, ".correction.rank"), group.correction.rank,
                         "0 where the profile has no basis");
  }
  return check_merge(absl::StrCat(field, ".merge"), group);
}

// Without a basis every coordinate is stored, and merged directions are halves.
Status check_kind_plan(const std::string& field, const std::vector<Band>& bands, const ProfileGroup& group,
                       int64_t latent_width) {
  const bool halves = bands[0].code == backend::Code::kHalf;
  if ((group.kind == GroupKind::kMerged) && !halves) {
    return content_error(absl::StrCat(field, "[0].code"), static_cast<int32_t>(bands[0].code),
                         "halves for directions of merged layers");
  }
  const bool whole = group.kind == GroupKind::kRows || group.kind == GroupKind::kMerged;
  if (!whole || (width_of(bands) == latent_width && bands.back().bits > 0)) return absl::OkStatus();
  return content_error(field, absl::StrCat("stored widths of ", width_of(bands)), latent_width);
}

// Layers that read others: roots read themselves and stand before those that read them.
Status check_sources(const Profile& profile, const std::vector<bool>& taken) {
  if (profile.sources.empty()) return absl::OkStatus();
  if (std::ssize(profile.sources) != profile.layer_count) {
    return content_error("sources", profile.sources.size(), profile.layer_count);
  }
  for (int32_t layer = 0; layer < profile.layer_count; ++layer) {
    const std::string field = absl::StrCat("sources[", layer, "]");
    const int32_t source = profile.sources[static_cast<size_t>(layer)];
    FOLDKV_RETURN_IF_ERROR(check_range(field, source, 0, layer));
    if (profile.sources[static_cast<size_t>(source)] != source) {
      return content_error(field, source, "a layer that reads its own keys and values");
    }
    if (source != layer && taken[static_cast<size_t>(layer)]) {
      return content_error(field, source, absl::StrCat(layer, ", since the layer is in a group"));
    }
  }
  return absl::OkStatus();
}

Status check_group(const std::string& field, const ProfileGroup& group, bool centred, std::vector<bool>& taken) {
  FOLDKV_RETURN_IF_ERROR(check_layers(absl::StrCat(field, ".layers"), group.layers, taken));
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".key_width"), group.key_width, 1,
                                     kMaxWidth / static_cast<int64_t>(group.layers.size())));
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".scale_group"), group.scale_group, 1, kMaxWidth));
  FOLDKV_RETURN_IF_ERROR(check_correction(absl::StrCat(field, ".correction"), group.correction, group.stacked_width()));
  FOLDKV_RETURN_IF_ERROR(check_kind(field, group));
  FOLDKV_RETURN_IF_ERROR(check_side(absl::StrCat(field, ".keys"), group.keys, group, centred));
  return check_side(absl::StrCat(field, ".values"), group.values, group, centred);
}

Status check_side_plan(const std::string& field, const std::vector<Band>& bands, const ProfileGroup& group,
                       int64_t latent_width) {
  FOLDKV_RETURN_IF_ERROR(check_bands(field, bands));
  if (bands.empty()) return content_error(field, "no bands", "1 or more");
  FOLDKV_RETURN_IF_ERROR(check_kind_plan(field, bands, group, latent_width));
  if (width_of(bands) <= latent_width) return absl::OkStatus();
  return content_error(field, absl::StrCat("widths that sum to ", width_of(bands)),
                       absl::StrCat("latent_width, ", latent_width, ", at most"));
}

Status check_plan(const std::string& field, const Plan& plan, const Profile& profile) {
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".name"), std::ssize(plan.name), 1, kMaxPlanName));
  if (plan.groups.size() != profile.groups.size()) {
    return content_error(absl::StrCat(field, ".groups"), plan.groups.size(), profile.groups.size());
  }
  if (!(plan.held_out_divergence >= 0.0) || std::isinf(plan.held_out_divergence)) {
    return content_error(absl::StrCat(field, ".held_out_divergence"), plan.held_out_divergence, "0 or more");
  }
  if (plan.held_out_tokens < 0) {
    return content_error(absl::StrCat(field, ".held_out_tokens"), plan.held_out_tokens, "0 or more");
  }
  for (size_t index = 0; index < plan.groups.size(); ++index) {
    const std::string group = absl::StrCat(field, ".groups[", index, "]");
    FOLDKV_RETURN_IF_ERROR(check_side_plan(absl::StrCat(group, ".keys"), plan.groups[index].keys, profile.groups[index],
                                           profile.groups[index].keys.latent_width));
    FOLDKV_RETURN_IF_ERROR(check_side_plan(absl::StrCat(group, ".values"), plan.groups[index].values,
                                           profile.groups[index], profile.groups[index].values.latent_width));
  }
  return absl::OkStatus();
}

Status check_plans(const Profile& profile) {
  FOLDKV_RETURN_IF_ERROR(check_range("plans", std::ssize(profile.plans), 1, kMaxPlans));
  for (size_t index = 0; index < profile.plans.size(); ++index) {
    const std::string field = absl::StrCat("plans[", index, "]");
    FOLDKV_RETURN_IF_ERROR(check_plan(field, profile.plans[index], profile));
    for (size_t earlier = 0; earlier < index; ++earlier) {
      if (profile.plans[earlier].name != profile.plans[index].name) continue;
      return content_error(absl::StrCat(field, ".name"), profile.plans[index].name, "a name that no other plan has");
    }
  }
  return absl::OkStatus();
}

void add_bands(Fingerprint& fingerprint, const std::vector<Band>& bands) {
  fingerprint.add(std::ssize(bands));
  for (const Band& band : bands) {
    fingerprint.add(int64_t{band.width}).add(int64_t{band.bits});
    if (band.code == backend::Code::kUniform) continue;  // as in version 1
    fingerprint.add(int64_t{static_cast<int32_t>(band.code)}).add(int64_t{band.step});
  }
}

// The bands of the first plan stand with their side, as they did when a profile had but one.
void add_side(Fingerprint& fingerprint, const ProfileSide& side, const std::vector<Band>& bands) {
  fingerprint.add(side.latent_width).add(std::span<const float>(side.basis)).add(std::span<const float>(side.mean));
  fingerprint.add(std::span<const double>(side.variances));
  add_bands(fingerprint, bands);
  if (!side.projection.empty()) fingerprint.add(std::span<const float>(side.projection));
}

void add_group(Fingerprint& fingerprint, const ProfileGroup& group, const GroupPlan& plan) {
  fingerprint.add(std::ssize(group.layers));
  for (int32_t layer : group.layers) fingerprint.add(int64_t{layer});
  fingerprint.add(group.key_width).add(int64_t{group.scale_group}).add(int64_t{group.rotated});
  const CorrectionRules& rules = group.correction;
  fingerprint.add(int64_t{rules.rank}).add(int64_t{rules.oversample}).add(int64_t{rules.iterations}).add(rules.seed);
  add_side(fingerprint, group.keys, plan.keys);
  add_side(fingerprint, group.values, plan.values);
  if (group.kind == GroupKind::kLearned) return;  // as in version 2
  fingerprint.add(int64_t{static_cast<int32_t>(group.kind)});
  const MergeRules& merge = group.merge;
  fingerprint.add(int64_t{merge.heads}).add(int64_t{merge.head_size}).add(int64_t{merge.retained});
  fingerprint.add(std::span<const float>(&merge.interpolation, 1));
}

bool has_only_default_plan(const Profile& profile) {
  return profile.plans.size() == 1 && profile.plans[0].name == kDefaultPlan;
}

void add_plans(Fingerprint& fingerprint, const std::vector<Plan>& plans) {
  for (const Plan& plan : plans) {
    fingerprint.add(plan.name);
    for (const GroupPlan& group : plan.groups) {
      add_bands(fingerprint, group.keys);
      add_bands(fingerprint, group.values);
    }
  }
}

Status check_figures(const std::string& field, const std::vector<LayerSensitivity>& figures, int32_t layer_count) {
  if (std::ssize(figures) != layer_count) {
    return content_error(field, absl::StrCat("figures of ", figures.size(), " layers"), layer_count);
  }
  for (size_t layer = 0; layer < figures.size(); ++layer) {
    const LayerSensitivity& figure = figures[layer];
    const std::string name = absl::StrCat(field, "[", layer, "]");
    if (!std::isfinite(figure.divergence) || figure.divergence < 0.0) {
      return content_error(name, figure.divergence, "a finite number, 0 or more");
    }
    if (figure.examples < 0 || figure.rows < figure.examples) {
      return content_error(name, absl::StrCat(figure.rows, " rows of ", figure.examples, " examples"),
                           "0 examples or more, of a row each at least");
    }
    if (figure.examples == 0 && (figure.rows != 0 || figure.divergence != 0.0)) {
      return content_error(name, absl::StrCat(figure.divergence, " without an example"), "0");
    }
  }
  return absl::OkStatus();
}

Status check_sensitivity(const ProfileSensitivity& sensitivity, int32_t layer_count) {
  FOLDKV_RETURN_IF_ERROR(check_range("sensitivity.text", std::ssize(sensitivity.text), 0, kMaxSensitivityText));
  if (!std::isfinite(sensitivity.scale) || sensitivity.scale < 0.0) {
    return content_error("sensitivity.scale", sensitivity.scale, "a finite number, 0 or more");
  }
  FOLDKV_RETURN_IF_ERROR(check_figures("sensitivity.keys", sensitivity.keys, layer_count));
  return check_figures("sensitivity.values", sensitivity.values, layer_count);
}

}  // namespace

Status check_content(const Profile& profile) {
  FOLDKV_RETURN_IF_ERROR(check_range("layer_count", profile.layer_count, 1, kMaxLayers));
  FOLDKV_RETURN_IF_ERROR(check_range("model_name", std::ssize(profile.model_name), 0, kMaxModelName));
  FOLDKV_RETURN_IF_ERROR(check_range("made_by", std::ssize(profile.made_by), 0, kMaxMadeBy));
  if (profile.calibration_tokens < 0)
    return content_error("calibration_tokens", profile.calibration_tokens, "0 or more");
  if (profile.calibration_samples < 0) {
    return content_error("calibration_samples", profile.calibration_samples, "0 or more");
  }
  if (!(profile.shrinkage >= 0.0 && profile.shrinkage <= 1.0)) {
    return content_error("shrinkage", profile.shrinkage, "0 to 1");
  }
  if (profile.groups.empty() && profile.sources.empty()) return content_error("groups", "none", "1 or more");
  std::vector<bool> taken(static_cast<size_t>(profile.layer_count));
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    const std::string field = absl::StrCat("groups[", index, "]");
    FOLDKV_RETURN_IF_ERROR(check_group(field, profile.groups[index], profile.centred, taken));
    if (index > 0 && profile.groups[index].layers[0] < profile.groups[index - 1].layers[0]) {
      return content_error(absl::StrCat(field, ".layers[0]"), profile.groups[index].layers[0],
                           "more than the first layer of the group before");
    }
  }
  FOLDKV_RETURN_IF_ERROR(check_sources(profile, taken));
  FOLDKV_RETURN_IF_ERROR(check_plans(profile));
  return profile.sensitivity ? check_sensitivity(*profile.sensitivity, profile.layer_count) : absl::OkStatus();
}

uint64_t bases_fingerprint(const Profile& profile) {
  Fingerprint fingerprint;
  fingerprint.add(std::string("FoldKV bases 1")).add(profile.model_fingerprint).add(profile.model_name);
  fingerprint.add(int64_t{profile.layer_count}).add(int64_t{profile.centred}).add(std::ssize(profile.groups));
  const GroupPlan no_bands;
  for (const ProfileGroup& group : profile.groups) add_group(fingerprint, group, no_bands);
  for (int32_t source : profile.sources) fingerprint.add(int64_t{source});
  return fingerprint.value();
}

uint64_t plan_fingerprint(const Plan& plan) {
  Fingerprint fingerprint;
  fingerprint.add(std::string("FoldKV plan 1"));
  for (const GroupPlan& group : plan.groups) {
    add_bands(fingerprint, group.keys);
    add_bands(fingerprint, group.values);
  }
  return fingerprint.value();
}

uint64_t content_fingerprint(const Profile& profile) {
  Fingerprint fingerprint;
  fingerprint.add(std::string(kFingerprintRules)).add(profile.model_fingerprint).add(profile.model_name);
  fingerprint.add(int64_t{profile.layer_count}).add(int64_t{profile.centred});
  fingerprint.add(profile.calibration_tokens).add(profile.calibration_samples).add(profile.made_by);
  fingerprint.add(std::ssize(profile.groups));
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    add_group(fingerprint, profile.groups[index], profile.plans[0].groups[index]);
  }
  // A profile that version 1 could hold has the fingerprint that it had then.
  if (!has_only_default_plan(profile)) add_plans(fingerprint, profile.plans);
  for (int32_t source : profile.sources) fingerprint.add(int64_t{source});
  return fingerprint.value();
}

}  // namespace foldkv
