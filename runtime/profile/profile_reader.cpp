#include "runtime/profile/profile_reader.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_generated.h"
#include "runtime/profile/read_numbers.h"
#include "runtime/profile/sealed_file.h"

namespace foldkv {
namespace {

// The deepest path is root, plan, group plan, bands.
constexpr flatbuffers::uoffset_t kMaxDepth = 8;
// 4 for each group and 3 for each group of each plan. The bound also ends loops over tables that share a place.
constexpr flatbuffers::uoffset_t kMaxTables = 1u << 22;

StatusOr<const file::Profile*> verify(const uint8_t* buffer, size_t size) {
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  options.max_tables = kMaxTables;
  flatbuffers::Verifier verifier(buffer, size, options);
  if (!file::VerifyProfileBuffer(verifier)) return corrupt_error("the profile's tables or offsets are not valid");
  const file::Profile* root = file::GetProfile(buffer);
  FOLDKV_RETURN_IF_ERROR(sealed_file::check_version("profile", root->version(), profile_file::kVersion));
  return root;
}

// The bytes of numbers that reading will take. Tables may share a place in the file, so that a small file can ask for
// much memory; an honest one never asks for more than it has.
uint64_t bytes_of_numbers(const file::Profile& root) {
  uint64_t bytes = root.sources() == nullptr ? 0 : uint64_t{root.sources()->size()} * sizeof(int32_t);
  for (const file::Group* group : *root.groups()) {
    bytes += uint64_t{group->layers()->size()} * sizeof(int32_t);
    for (const file::Side* side : {group->keys(), group->values()}) {
      bytes += uint64_t{side->basis()->size()} * sizeof(float) + uint64_t{side->mean()->size()} * sizeof(float);
      bytes += uint64_t{side->variances()->size()} * sizeof(double);
      if (side->projection() != nullptr) bytes += uint64_t{side->projection()->size()} * sizeof(float);
      if (side->gains() != nullptr) bytes += uint64_t{side->gains()->size()} * sizeof(double);
    }
  }
  for (const file::Plan* plan : *root.plans()) {
    for (const file::GroupPlan* group : *plan->groups()) {
      for (const file::Bands* bands : {group->keys(), group->values()}) {
        bytes += (uint64_t{bands->widths()->size()} + bands->bits()->size()) * sizeof(int32_t);
        if (bands->codes() != nullptr) bytes += uint64_t{bands->codes()->size()} * sizeof(int32_t);
        if (bands->steps() != nullptr) bytes += uint64_t{bands->steps()->size()} * sizeof(int32_t);
      }
    }
  }
  if (const file::Sensitivity* sensitivity = root.sensitivity()) {
    for (const file::LayerFigures* figures : {sensitivity->keys(), sensitivity->values()}) {
      bytes += uint64_t{figures->divergences()->size()} * sizeof(LayerSensitivity);
    }
  }
  return bytes;
}

StatusOr<std::vector<Band>> read_bands(const file::Bands& source) {
  const flatbuffers::uoffset_t count = source.widths()->size();
  for (const flatbuffers::Vector<int32_t>* numbers : {source.bits(), source.codes(), source.steps()}) {
    if (numbers != nullptr && numbers->size() != count) {
      return corrupt_error(
          absl::StrCat("a plan has ", count, " bands and the bits, codes or steps of ", numbers->size()));
    }
  }
  std::vector<Band> bands;
  for (flatbuffers::uoffset_t index = 0; index < count; ++index) {
    Band& band = bands.emplace_back(Band{source.widths()->Get(index), source.bits()->Get(index)});
    if (source.codes() != nullptr) band.code = static_cast<backend::Code>(source.codes()->Get(index));
    if (source.steps() != nullptr) band.step = source.steps()->Get(index);
  }
  return bands;
}

ProfileSide read_side(const file::Side& source) {
  ProfileSide side;
  side.latent_width = source.latent_width();
  side.basis = read_numbers(*source.basis());
  side.mean = read_numbers(*source.mean());
  side.variances = read_numbers(*source.variances());
  if (source.projection() != nullptr) side.projection = read_numbers(*source.projection());
  if (source.gains() != nullptr) side.gains = read_numbers(*source.gains());
  return side;
}

ProfileGroup read_group(const file::Group& source) {
  ProfileGroup group;
  group.layers = read_numbers(*source.layers());
  group.key_width = source.key_width();
  group.scale_group = source.scale_group();
  group.rotated = source.rotated();
  if (const file::Correction* rules = source.correction()) {
    group.correction = {rules->rank(), rules->oversample(), rules->iterations(), rules->seed()};
  }
  group.keys = read_side(*source.keys());
  group.values = read_side(*source.values());
  group.kind = static_cast<GroupKind>(source.kind());
  if (const file::Merge* merge = source.merge()) {
    group.merge = {merge->heads(), merge->head_size(), merge->retained(), merge->interpolation()};
  }
  return group;
}

StatusOr<Plan> read_plan(const file::Plan& source) {
  Plan plan;
  plan.name = read_text(source.name());
  plan.held_out_divergence = source.held_out_divergence();
  plan.held_out_tokens = source.held_out_tokens();
  for (const file::GroupPlan* group : *source.groups()) {
    GroupPlan& read = plan.groups.emplace_back();
    FOLDKV_ASSIGN_OR_RETURN(read.keys, read_bands(*group->keys()));
    FOLDKV_ASSIGN_OR_RETURN(read.values, read_bands(*group->values()));
  }
  return plan;
}

StatusOr<std::vector<LayerSensitivity>> read_figures(const file::LayerFigures& source) {
  const flatbuffers::uoffset_t count = source.divergences()->size();
  if (source.rows()->size() != count || source.examples()->size() != count) {
    return corrupt_error(absl::StrCat("sensitivities of ", count, " layers have rows of ", source.rows()->size(),
                                      " and examples of ", source.examples()->size()));
  }
  std::vector<LayerSensitivity> figures;
  for (flatbuffers::uoffset_t layer = 0; layer < count; ++layer) {
    figures.push_back({source.divergences()->Get(layer), source.rows()->Get(layer), source.examples()->Get(layer)});
  }
  return figures;
}

StatusOr<ProfileSensitivity> read_sensitivity(const file::Sensitivity& source) {
  ProfileSensitivity sensitivity;
  sensitivity.scale = source.scale();
  sensitivity.seed = source.seed();
  sensitivity.text = read_text(source.text());
  FOLDKV_ASSIGN_OR_RETURN(sensitivity.keys, read_figures(*source.keys()));
  FOLDKV_ASSIGN_OR_RETURN(sensitivity.values, read_figures(*source.values()));
  return sensitivity;
}

StatusOr<Profile> read_content(const file::Profile& root) {
  Profile profile;
  profile.model_fingerprint = root.model()->fingerprint();
  profile.model_name = read_text(root.model()->name());
  profile.layer_count = root.model()->layer_count();
  profile.centred = root.centred();
  profile.calibration_tokens = root.provenance()->calibration_tokens();
  profile.calibration_samples = root.provenance()->calibration_samples();
  profile.shrinkage = root.provenance()->shrinkage();
  profile.made_by = read_text(root.provenance()->made_by());
  for (const file::Group* group : *root.groups()) profile.groups.push_back(read_group(*group));
  for (const file::Plan* plan : *root.plans()) {
    FOLDKV_ASSIGN_OR_RETURN(profile.plans.emplace_back(), read_plan(*plan));
  }
  if (root.sources() != nullptr) profile.sources = read_numbers(*root.sources());
  if (root.sensitivity() != nullptr) {
    FOLDKV_ASSIGN_OR_RETURN(profile.sensitivity, read_sensitivity(*root.sensitivity()));
  }
  return profile;
}

}  // namespace

StatusOr<ProfileFile> read_profile_file(const void* bytes, size_t size) {
  if (bytes == nullptr) return argument_error("bytes", "bytes: got NULL, expected a profile");
  const auto* file_bytes = static_cast<const uint8_t*>(bytes);
  FOLDKV_ASSIGN_OR_RETURN(const size_t buffer_size,
                          sealed_file::check_envelope(file_bytes, size, {"profile", file::ProfileIdentifier()}));
  std::vector<uint64_t> copy;
  FOLDKV_ASSIGN_OR_RETURN(const file::Profile* root,
                          verify(sealed_file::aligned(file_bytes, buffer_size, copy), buffer_size));
  if (bytes_of_numbers(*root) > buffer_size) {
    return corrupt_error("the profile's tables share numbers that belong to one of them");
  }
  FOLDKV_ASSIGN_OR_RETURN(Profile profile, read_content(*root));
  if (const Status status = finish_profile(profile); !status.ok()) {
    return corrupt_error(absl::StrCat("the profile contradicts itself: ", status.message()));
  }
  return ProfileFile{std::move(profile), root->fingerprint()};
}

StatusOr<Profile> read_profile(const void* bytes, size_t size) {
  FOLDKV_ASSIGN_OR_RETURN(ProfileFile file, read_profile_file(bytes, size));
  if (file.profile.fingerprint != file.stated_fingerprint) {
    return corrupt_error("the profile's fingerprint does not fit its content");
  }
  return std::move(file.profile);
}

}  // namespace foldkv
