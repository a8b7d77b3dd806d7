#include "runtime/policy/codec_profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "runtime/base/check_range.h"
#include "runtime/calibration/layer_groups.h"
#include "runtime/profile/limits.h"

namespace foldkv {
namespace {

constexpr int32_t kKiviChannels = 32;

ProfileGroup empty_group(const Model& model, GroupKind kind, std::vector<int32_t> layers) {
  ProfileGroup group;
  group.kind = kind;
  group.layers = std::move(layers);
  group.key_width = model.layer(group.layers[0]).key_width();
  for (ProfileSide* side : {&group.keys, &group.values}) {
    side->mean.resize(static_cast<size_t>(group.stacked_width()));
    side->variances.resize(static_cast<size_t>(group.stacked_width()));
  }
  return group;
}

void add_group(Profile& profile, ProfileGroup group, const Band& keys, const Band& values) {
  group.keys.latent_width = keys.width;
  group.values.latent_width = values.width;
  profile.groups.push_back(std::move(group));
  profile.plans[0].groups.push_back({{keys}, {values}});
}

int32_t bits_or(const CodecWish& wish, int32_t usual) { return wish.bits == 0 ? usual : wish.bits; }

Status check_bits(const CodecWish& wish) {
  if (wish.bits == 0) return absl::OkStatus();
  const bool halves = wish.codec == CodecName::kXkv && wish.bits == kHalfBits;
  if (halves) return absl::OkStatus();
  return check_range("bits", wish.bits, kMinBandBits, kMaxBandBits);
}

Status add_integer_groups(const Model& model, const CodecWish& wish, Profile& profile) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<LayerGroup> layers, make_layer_groups(model, 1));
  for (const LayerGroup& layer : layers) {
    ProfileGroup group = empty_group(model, GroupKind::kRows, layer);
    group.scale_group = static_cast<int32_t>(model.layer(layer[0]).head_size);
    const Band band{static_cast<int32_t>(group.key_width), bits_or(wish, 8)};
    add_group(profile, std::move(group), band, band);
  }
  return absl::OkStatus();
}

Status add_kivi_groups(const Model& model, const CodecWish& wish, Profile& profile) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<LayerGroup> layers, make_layer_groups(model, 1));
  for (const LayerGroup& layer : layers) {
    ProfileGroup group = empty_group(model, GroupKind::kRows, layer);
    group.scale_group = kKiviChannels;
    const auto width = static_cast<int32_t>(group.key_width);
    const int32_t bits = bits_or(wish, 4);
    add_group(profile, std::move(group), {width, bits, backend::Code::kChannel}, {width, bits, backend::Code::kAsymmetric});
  }
  return absl::OkStatus();
}

// rank 0: that share of the width.
int32_t rank_or_share(int32_t rank, int64_t width, int64_t numerator, int64_t denominator) {
  if (rank != 0) return static_cast<int32_t>(std::min<int64_t>(rank, width));
  return static_cast<int32_t>(std::max<int64_t>(1, width * numerator / denominator));
}

Status add_xkv_groups(const Model& model, const CodecWish& wish, Profile& profile) {
  for (const auto& [name, rank] : {std::pair("key_rank", wish.key_rank), std::pair("value_rank", wish.value_rank)}) {
    if (rank < 0) return argument_error(name, absl::StrCat("is ", rank, ", expected 0 or more"));
  }
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<LayerGroup> layers,
                          make_layer_groups(model, wish.layers_per_group == 0 ? 4 : wish.layers_per_group));
  const int32_t bits = bits_or(wish, kHalfBits);
  const backend::Code code = bits == kHalfBits ? backend::Code::kHalf : backend::Code::kAsymmetric;
  for (const LayerGroup& some : layers) {
    ProfileGroup group = empty_group(model, GroupKind::kSequence, some);
    group.scale_group = kKiviChannels;
    const int64_t width = group.stacked_width();
    add_group(profile, std::move(group), {rank_or_share(wish.key_rank, width, 3, 32), bits, code},
              {rank_or_share(wish.value_rank, width, 9, 64), bits, code});
  }
  return absl::OkStatus();
}

Status check_merge(const Model& model, const CodecWish& wish) {
  if (!(wish.interpolation >= 0.0 && wish.interpolation <= 1.0)) {
    return argument_error("interpolation", absl::StrCat("is ", wish.interpolation, ", expected 0 to 1"));
  }
  if (!(wish.retained >= 0.0 && wish.retained <= 1.0)) {
    return argument_error("retained", absl::StrCat("is ", wish.retained, ", expected 0 to 1"));
  }
  return check_range("first_layer", wish.first_layer, 0, model.layer_count() - 1);
}

Status add_minicache_groups(const Model& model, const CodecWish& wish, Profile& profile) {
  FOLDKV_RETURN_IF_ERROR(check_merge(model, wish));
  const int64_t first = wish.first_layer == 0 ? model.layer_count() / 2 : wish.first_layer;
  for (int64_t layer = first; layer + 1 < model.layer_count();) {
    const LayerRules& rules = model.layer(layer);
    if (rules.window > 0 || !rules.same_kind(model.layer(layer + 1))) {
      ++layer;
      continue;
    }
    ProfileGroup group = empty_group(model, GroupKind::kMerged,
                                     {static_cast<int32_t>(layer), static_cast<int32_t>(layer + 1)});
    group.scale_group = static_cast<int32_t>(group.key_width);
    group.merge.heads = static_cast<int32_t>(rules.kv_heads);
    group.merge.head_size = static_cast<int32_t>(rules.head_size);
    group.merge.retained = static_cast<int32_t>(std::ceil(wish.retained * static_cast<double>(kLatentPageTokens)));
    group.merge.interpolation = static_cast<float>(wish.interpolation);
    const Band band{static_cast<int32_t>(group.key_width), kHalfBits, backend::Code::kHalf};
    add_group(profile, std::move(group), band, band);
    layer += 2;
  }
  if (!profile.groups.empty()) return absl::OkStatus();
  return argument_error("first_layer", absl::StrCat("is ", wish.first_layer,
                                                    ": no two neighbouring layers of one kind without a window follow"));
}

Status set_sources(const Model& model, const CodecWish& wish, Profile& profile) {
  if (std::ssize(wish.sources) != model.layer_count()) {
    return argument_error("sources", absl::StrCat("has ", wish.sources.size(), " layers, the model has ",
                                                  model.layer_count()));
  }
  for (size_t layer = 0; layer < wish.sources.size(); ++layer) {
    const int32_t source = wish.sources[layer];
    const std::string field = absl::StrCat("sources[", layer, "]");
    FOLDKV_RETURN_IF_ERROR(check_range(field, source, 0, static_cast<int64_t>(layer)));
    // Earlier ones lead to their roots already.
    const bool own = source == static_cast<int32_t>(layer);
    profile.sources.push_back(own ? source : profile.sources[static_cast<size_t>(source)]);
    if (!model.layer(static_cast<int64_t>(layer)).same_kind(model.layer(source))) {
      return argument_error(field, absl::StrCat("is ", source, ", a layer of another kind"));
    }
  }
  return absl::OkStatus();
}

Status add_codec(const Model& model, const CodecWish& wish, Profile& profile) {
  switch (wish.codec) {
    case CodecName::kInteger: return add_integer_groups(model, wish, profile);
    case CodecName::kKivi: return add_kivi_groups(model, wish, profile);
    case CodecName::kXkv: return add_xkv_groups(model, wish, profile);
    case CodecName::kMiniCache: return add_minicache_groups(model, wish, profile);
    case CodecName::kKvSharer: return set_sources(model, wish, profile);
  }
  return argument_error("codec", absl::StrCat("is ", static_cast<int32_t>(wish.codec), ", expected 1 to 5"));
}

}  // namespace

StatusOr<Profile> make_codec_profile(const Model& model, const CodecWish& wish) {
  FOLDKV_RETURN_IF_ERROR(check_bits(wish));
  Profile profile;
  profile.model_fingerprint = model.fingerprint();
  profile.model_name = model.name();
  profile.layer_count = static_cast<int32_t>(model.layer_count());
  profile.centred = false;
  profile.made_by = wish.made_by;
  profile.plans.push_back({kDefaultPlan, {}});
  FOLDKV_RETURN_IF_ERROR(add_codec(model, wish, profile));
  FOLDKV_RETURN_IF_ERROR(finish_profile(profile));
  return profile;
}

}  // namespace foldkv
