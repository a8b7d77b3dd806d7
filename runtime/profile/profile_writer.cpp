#include "runtime/profile/profile_writer.h"

#include <algorithm>
#include <cstddef>

#include "runtime/profile/bands.h"
#include "runtime/profile/limits.h"
#include "runtime/profile/profile_content.h"
#include "runtime/profile/profile_generated.h"
#include "runtime/profile/sealed_file.h"

namespace foldkv {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

template <typename Table>
using TableVector = Offset<flatbuffers::Vector<Offset<Table>>>;

// Bytes of all vectors of numbers, and room for the tables around them; the builder cannot report an overflow.
size_t estimated_bytes(const Profile& profile) {
  constexpr size_t kTableRoom = 1024;
  size_t bytes = kTableRoom + profile.model_name.size() + profile.made_by.size();
  bytes += profile.sources.size() * sizeof(int32_t);
  for (const ProfileGroup& group : profile.groups) {
    bytes += kTableRoom + group.layers.size() * sizeof(int32_t);
    for (const ProfileSide* side : {&group.keys, &group.values}) {
      bytes += (side->basis.size() + side->projection.size() + side->mean.size()) * sizeof(float);
      bytes += (side->variances.size() + side->gains.size()) * sizeof(double);
    }
  }
  for (const Plan& plan : profile.plans) {
    bytes += kTableRoom;
    for (const GroupPlan& group : plan.groups) {
      bytes += kTableRoom + 2 * (group.keys.size() + group.values.size()) * sizeof(Band);
    }
  }
  if (profile.sensitivity) {
    const auto layers = static_cast<size_t>(profile.layer_count);
    bytes += kTableRoom + profile.sensitivity->text.size() + 2 * layers * sizeof(LayerSensitivity);
  }
  return bytes;
}

Offset<file::Side> write_side(FlatBufferBuilder& builder, const ProfileSide& side) {
  const auto basis = builder.CreateVector(side.basis);
  const auto mean = builder.CreateVector(side.mean);
  const auto variances = builder.CreateVector(side.variances);
  const auto projection = side.projection.empty() ? Offset<flatbuffers::Vector<float>>()
                                                  : builder.CreateVector(side.projection);
  const auto gains =
      side.gains.empty() ? Offset<flatbuffers::Vector<double>>() : builder.CreateVector(side.gains);
  return file::CreateSide(builder, side.latent_width, basis, mean, variances, projection, gains);
}

Offset<file::Group> write_group(FlatBufferBuilder& builder, const ProfileGroup& group) {
  const auto layers = builder.CreateVector(group.layers);
  const CorrectionRules& rules = group.correction;
  const auto correction = file::CreateCorrection(builder, rules.rank, rules.oversample, rules.iterations, rules.seed);
  const auto keys = write_side(builder, group.keys);
  const auto values = write_side(builder, group.values);
  const MergeRules& merge = group.merge;
  const auto merged = group.kind == GroupKind::kMerged ? file::CreateMerge(builder, merge.heads, merge.head_size,
                                                                           merge.retained, merge.interpolation)
                                                       : Offset<file::Merge>();
  return file::CreateGroup(builder, layers, group.key_width, group.scale_group, group.rotated, correction, keys,
                           values, static_cast<int32_t>(group.kind), merged);
}

TableVector<file::Group> write_groups(FlatBufferBuilder& builder, const Profile& profile) {
  std::vector<Offset<file::Group>> groups;
  for (const ProfileGroup& group : profile.groups) groups.push_back(write_group(builder, group));
  return builder.CreateVector(groups);
}

bool all_uniform(const std::vector<Band>& bands) {
  return std::all_of(bands.begin(), bands.end(), [](const Band& band) { return band.code == backend::Code::kUniform; });
}

Offset<file::Bands> write_bands(FlatBufferBuilder& builder, const std::vector<Band>& bands) {
  std::vector<int32_t> widths;
  std::vector<int32_t> bits;
  std::vector<int32_t> codes;
  std::vector<int32_t> steps;
  for (const Band& band : bands) {
    widths.push_back(band.width);
    bits.push_back(band.bits);
    codes.push_back(static_cast<int32_t>(band.code));
    steps.push_back(band.step);
  }
  const auto width_vector = builder.CreateVector(widths);
  const auto bits_vector = builder.CreateVector(bits);
  if (all_uniform(bands)) return file::CreateBands(builder, width_vector, bits_vector);
  const auto code_vector = builder.CreateVector(codes);
  const auto step_vector = builder.CreateVector(steps);
  return file::CreateBands(builder, width_vector, bits_vector, code_vector, step_vector);
}

Offset<file::Plan> write_plan(FlatBufferBuilder& builder, const Plan& plan) {
  std::vector<Offset<file::GroupPlan>> groups;
  for (const GroupPlan& group : plan.groups) {
    const auto keys = write_bands(builder, group.keys);
    const auto values = write_bands(builder, group.values);
    groups.push_back(file::CreateGroupPlan(builder, keys, values));
  }
  const auto name = builder.CreateString(plan.name);
  const auto group_vector = builder.CreateVector(groups);
  return file::CreatePlan(builder, name, group_vector, plan.held_out_divergence, plan.held_out_tokens);
}

TableVector<file::Plan> write_plans(FlatBufferBuilder& builder, const std::vector<Plan>& source) {
  std::vector<Offset<file::Plan>> plans;
  for (const Plan& plan : source) plans.push_back(write_plan(builder, plan));
  return builder.CreateVector(plans);
}

bool needs_version_3(const Profile& profile) {
  const auto is_new = [](const Band& band) { return band.code > backend::Code::kTrellis; };
  for (const Plan& plan : profile.plans) {
    for (const GroupPlan& group : plan.groups) {
      if (std::any_of(group.keys.begin(), group.keys.end(), is_new)) return true;
      if (std::any_of(group.values.begin(), group.values.end(), is_new)) return true;
    }
  }
  return !profile.sources.empty() || std::any_of(profile.groups.begin(), profile.groups.end(), [](const auto& group) {
    return group.kind != GroupKind::kLearned;
  });
}

// The lowest version that holds the profile, so that libraries which know no later one read all that they can.
int32_t file_version(const Profile& profile) {
  if (needs_version_3(profile)) return 3;
  if (profile.plans.size() > 1 || profile.plans[0].name != kDefaultPlan) return 2;
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    const ProfileGroup& group = profile.groups[index];
    const GroupPlan& plan = profile.plans[0].groups[index];
    if (!group.keys.projection.empty() || !group.values.projection.empty()) return 2;
    if (!all_uniform(plan.keys) || !all_uniform(plan.values)) return 2;
    if (width_of(plan.keys) < group.keys.latent_width || width_of(plan.values) < group.values.latent_width) return 2;
  }
  return 1;
}

Offset<file::ModelIdentity> write_model(FlatBufferBuilder& builder, const Profile& profile) {
  const auto name =
      profile.model_name.empty() ? Offset<flatbuffers::String>() : builder.CreateString(profile.model_name);
  return file::CreateModelIdentity(builder, profile.model_fingerprint, name, profile.layer_count);
}

Offset<file::LayerFigures> write_figures(FlatBufferBuilder& builder, const std::vector<LayerSensitivity>& figures) {
  std::vector<double> divergences;
  std::vector<int64_t> rows;
  std::vector<int64_t> examples;
  for (const LayerSensitivity& figure : figures) {
    divergences.push_back(figure.divergence);
    rows.push_back(figure.rows);
    examples.push_back(figure.examples);
  }
  const auto divergence_vector = builder.CreateVector(divergences);
  const auto row_vector = builder.CreateVector(rows);
  const auto example_vector = builder.CreateVector(examples);
  return file::CreateLayerFigures(builder, divergence_vector, row_vector, example_vector);
}

Offset<file::Sensitivity> write_sensitivity(FlatBufferBuilder& builder, const ProfileSensitivity& sensitivity) {
  const auto text = builder.CreateString(sensitivity.text);
  const auto keys = write_figures(builder, sensitivity.keys);
  const auto values = write_figures(builder, sensitivity.values);
  return file::CreateSensitivity(builder, sensitivity.scale, sensitivity.seed, text, keys, values);
}

void write_root(FlatBufferBuilder& builder, const Profile& profile) {
  const auto model = write_model(builder, profile);
  const auto made_by = builder.CreateString(profile.made_by);
  const auto provenance = file::CreateProvenance(builder, made_by, profile.calibration_tokens,
                                                 profile.calibration_samples, profile.shrinkage);
  const auto groups = write_groups(builder, profile);
  const auto plans = write_plans(builder, profile.plans);
  const auto sources = profile.sources.empty() ? Offset<flatbuffers::Vector<int32_t>>()
                                               : builder.CreateVector(profile.sources);
  const auto sensitivity =
      profile.sensitivity ? write_sensitivity(builder, *profile.sensitivity) : Offset<file::Sensitivity>();
  const auto root = file::CreateProfile(builder, file_version(profile), model, provenance, profile.centred, groups,
                                        plans, profile.fingerprint, sources, sensitivity);
  file::FinishProfileBuffer(builder, root);
}

}  // namespace

StatusOr<std::vector<uint8_t>> write_profile(const Profile& profile) {
  if (profile.fingerprint != content_fingerprint(profile)) {
    return internal_error("a profile was changed after it was finished");
  }
  const size_t room = estimated_bytes(profile);
  if (room > sealed_file::kMaxBytes - sealed_file::kAlignment) {
    return unsupported_error(absl::StrCat("the profile takes ", room, " bytes, a file holds ", sealed_file::kMaxBytes,
                                          " at most; use smaller latent widths"));
  }
  FlatBufferBuilder builder(room);
  write_root(builder, profile);
  return sealed_file::seal(builder.GetBufferPointer(), builder.GetSize());
}

}  // namespace foldkv
