#include "runtime/cache/check_eviction.h"

#include <algorithm>

namespace foldkv {
namespace {

// Numbers of layers that the host or the profile must give.
Status check_layer_numbers(const EvictionPolicy& policy, const PreparedProfile& profile) {
  const LayerAllocator layers = policy.budget.layers;
  const bool measured = profile.profile != nullptr && profile.profile->sensitivity.has_value();
  const bool wanted = layers == LayerAllocator::kRipple || layers == LayerAllocator::kImportance ||
                      layers == LayerAllocator::kCustom || layers == LayerAllocator::kEpisode;
  if (!wanted || !policy.budget.layer_numbers.empty()) return absl::OkStatus();
  if (layers == LayerAllocator::kRipple && measured) return absl::OkStatus();
  return argument_error("budget.layer_numbers",
                        layers == LayerAllocator::kRipple
                            ? "are absent, and so are sensitivities in the profile; RippleKV needs one of them"
                            : "are absent; this allocator needs one for each layer");
}

Status check_codec(const PreparedProfile& profile, const SequencePolicy& policy) {
  const EvictionPolicy& rules = policy.eviction->policy;
  for (const PreparedGroup& group : profile.groups) {
    if (group.layouts[policy.plan].run_tokens() > 1) {
      return unsupported_error("tokens of this codec share scales or directions, so that none can be evicted alone");
    }
  }
  if (!profile.groups.empty() && rules.reduction.weighting != ValueWeighting::kNone && rules.selection.interval > 0) {
    return unsupported_error("values of latents are not weighed in generation; set the interval to none");
  }
  return absl::OkStatus();
}

// The next position is one for all: every layer must hold as many tokens as the others, at any time.
Status check_reindexing(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy) {
  if (!policy.eviction->policy.selection.reindexed) return absl::OkStatus();
  if (!policy.eviction->pinned.empty()) {
    return unsupported_error("positions cannot be numbered anew where tokens are pinned by their positions");
  }
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    if (!evicts(policy, model, layer)) {
      return unsupported_error(
          absl::StrCat("positions cannot be numbered anew: layer ", layer, " keeps all of its tokens"));
    }
    // Layers whose tokens become latents are cut when a run does, others at any step.
    if (!profile.groups.empty() && profile.place_of_layer[static_cast<size_t>(layer)].group < 0) {
      return unsupported_error(
          absl::StrCat("positions cannot be numbered anew: layer ", layer, " is in no layer group, and others are"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status check_eviction(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy) {
  if (policy.eviction == nullptr) return absl::OkStatus();
  const EvictionPolicy& rules = policy.eviction->policy;
  FOLDKV_RETURN_IF_ERROR(check_policy(rules, model.layer_count()));
  FOLDKV_RETURN_IF_ERROR(check_layer_numbers(rules, profile));
  FOLDKV_RETURN_IF_ERROR(check_codec(profile, policy));
  if (rules.reduction.weighting == ValueWeighting::kOutputNormL1 && !model.has_output_weights()) {
    return state_error("the policy weighs outputs of values; output weights are not bound for some layer");
  }
  const bool forecast = rules.scoring.scorer == Scorer::kExpectedAttention;
  if (forecast && !profile.groups.empty() && rules.selection.interval > 0) {
    return unsupported_error("keys of latents are not looked at by a forecast in generation; set the interval to none");
  }
  return check_reindexing(model, profile, policy);
}

}  // namespace foldkv
