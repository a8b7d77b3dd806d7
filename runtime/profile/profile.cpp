#include "runtime/profile/profile.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "absl/strings/str_format.h"
#include "runtime/profile/profile_content.h"

namespace foldkv {
namespace {

// Geometry first: it says more than two fingerprints do.
Status check_group(const ProfileGroup& group, size_t index, const Model& model) {
  const LayerRules& first = model.layer(group.layers[0]);
  for (int32_t layer : group.layers) {
    const LayerRules& rules = model.layer(layer);
    if (rules.key_width() != group.key_width) {
      return mismatch_error(absl::StrCat("layer ", layer, ": the profile has a key width (kv_heads * head_size) of ",
                                         group.key_width, ", the model of ", rules.key_width()));
    }
    if (!rules.same_kind(first)) {
      return mismatch_error(absl::StrCat("layers ", group.layers[0], " and ", layer, " share group ", index,
                                         " of the profile but are of different kinds in the model (heads, head size, "
                                         "rotation, window or key norm)"));
    }
  }
  if (group.kind == GroupKind::kMerged &&
      (group.merge.heads != first.kv_heads || group.merge.head_size != first.head_size)) {
    return mismatch_error(absl::StrCat("group ", index, " of the profile merges ", group.merge.heads, " heads of ",
                                       group.merge.head_size, ", the model has ", first.kv_heads, " of ",
                                       first.head_size));
  }
  return absl::OkStatus();
}

Status check_sources(const std::vector<int32_t>& sources, const Model& model) {
  for (size_t layer = 0; layer < sources.size(); ++layer) {
    if (model.layer(static_cast<int64_t>(layer)).same_kind(model.layer(sources[layer]))) continue;
    return mismatch_error(absl::StrCat("layer ", layer, " reads layer ", sources[layer],
                                       " by the profile, but they are of different kinds in the model"));
  }
  return absl::OkStatus();
}

}  // namespace

LatentFormat latent_format(const ProfileGroup& group, const GroupPlan& plan) {
  return {{plan.keys, group.keys.latent_width, group.keys.variances},
          {plan.values, group.values.latent_width, group.values.variances},
          group.scale_group,
          group.correction.rank,
          group.merge};
}

int64_t bytes_per_token(const Profile& profile, const Plan& plan) {
  int64_t bytes = 0;
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    bytes += latent_token_bytes(latent_layout(latent_format(profile.groups[index], plan.groups[index])));
  }
  return bytes;
}

int64_t full_bytes_per_token(const Profile& profile) {
  constexpr int64_t kHalfBytes = 2;
  int64_t bytes = 0;
  for (const ProfileGroup& group : profile.groups) bytes += 2 * kHalfBytes * group.stacked_width();
  return bytes;
}

StatusOr<int64_t> find_plan(const Profile& profile, absl::string_view name) {
  if (name.empty()) return 0;
  std::string known;
  for (size_t index = 0; index < profile.plans.size(); ++index) {
    if (profile.plans[index].name == name) return static_cast<int64_t>(index);
    absl::StrAppend(&known, known.empty() ? "" : ", ", profile.plans[index].name);
  }
  return argument_error("plan", absl::StrCat("plan: got \"", name, "\", the profile has: ", known));
}

StatusOr<Profile> record_divergence(const Profile& profile, absl::string_view plan, double divergence,
                                    int64_t tokens) {
  FOLDKV_ASSIGN_OR_RETURN(const int64_t index, find_plan(profile, plan));
  if (!(divergence >= 0.0) || std::isinf(divergence)) {
    return argument_error("divergence", absl::StrCat("divergence: got ", divergence, ", expected 0 or more"));
  }
  if (tokens < 1) return argument_error("tokens", absl::StrCat("tokens: got ", tokens, ", expected 1 or more"));
  Profile recorded = profile;
  recorded.plans[static_cast<size_t>(index)].held_out_divergence = divergence;
  recorded.plans[static_cast<size_t>(index)].held_out_tokens = tokens;
  return recorded;
}

Status finish_profile(Profile& profile) {
  FOLDKV_RETURN_IF_ERROR(check_content(profile));
  profile.fingerprint = content_fingerprint(profile);
  return absl::OkStatus();
}

Status check_profile(const Profile& profile, const Model& model) {
  if (profile.layer_count != model.layer_count()) {
    return mismatch_error(absl::StrCat("the profile was made for a model of ", profile.layer_count,
                                       " layers, this one has ", model.layer_count()));
  }
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(check_group(profile.groups[index], index, model));
  }
  FOLDKV_RETURN_IF_ERROR(check_sources(profile.sources, model));
  if (!profile.model_name.empty() && !model.name().empty() && profile.model_name != model.name()) {
    return mismatch_error(absl::StrCat("the profile was made for the model \"", profile.model_name,
                                       "\", this one is \"", model.name(), "\""));
  }
  if (profile.model_fingerprint != model.fingerprint()) {
    return mismatch_error(absl::StrFormat(
        "the key widths fit, but other rules of the model's layers (heads, rotation, window, scale, soft cap or norms) "
        "differ: the profile's model has fingerprint %016x, this one %016x",
        profile.model_fingerprint, model.fingerprint()));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
