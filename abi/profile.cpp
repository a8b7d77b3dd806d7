#include <algorithm>
#include <numeric>
#include <string>

#include "abi/check_place.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_struct.h"
#include "abi/write_bytes.h"
#include "runtime/calibration/plan_bits.h"
#include "runtime/codec/latent_layout.h"
#include "runtime/policy/codec_profile.h"
#include "runtime/profile/limits.h"
#include "runtime/profile/profile_reader.h"
#include "runtime/profile/profile_writer.h"

namespace foldkv::abi {
namespace {

foldkv_profile_info profile_info(const Profile& profile) {
  foldkv_profile_info info{};
  info.layer_count = profile.layer_count;
  info.group_count = static_cast<int32_t>(profile.groups.size());
  info.centred = profile.centred ? 1 : 0;
  info.model_fingerprint = profile.model_fingerprint;
  info.fingerprint = profile.fingerprint;
  info.calibration_tokens = profile.calibration_tokens;
  info.calibration_samples = profile.calibration_samples;
  write_text(info.model_name, profile.model_name);
  write_text(info.made_by, profile.made_by);
  info.plan_count = static_cast<int32_t>(profile.plans.size());
  info.shrinkage = profile.shrinkage;
  return info;
}

foldkv_plan_info plan_info(const Profile& profile, const Plan& plan) {
  foldkv_plan_info info{};
  write_text(info.name, plan.name);
  info.bytes_per_token = bytes_per_token(profile, plan);
  info.full_bytes_per_token = full_bytes_per_token(profile);
  info.expected_cost = expected_cost(profile, plan);
  info.held_out_divergence = plan.held_out_divergence;
  info.held_out_tokens = plan.held_out_tokens;
  return info;
}

// Of a row of the bases that a sequence finds for itself.
int64_t numbers_of_own_bases(const ProfileGroup& group, const GroupPlan& plan) {
  if (group.kind != GroupKind::kSequence) return 0;
  const bool has_projections = plan.keys[0].code != backend::Code::kHalf;
  return (group.keys.latent_width + group.values.latent_width) * (has_projections ? 2 : 1);
}

foldkv_group_info group_info(const Profile& profile, const Plan& chosen, size_t index) {
  const ProfileGroup& group = profile.groups[index];
  const GroupPlan& plan = chosen.groups[index];
  const auto [key_cost, value_cost] = expected_costs(profile, chosen)[index];
  foldkv_group_info info{};
  info.layer_count = static_cast<int32_t>(group.layers.size());
  info.key_width = static_cast<int32_t>(group.key_width);
  info.key_latent_width = static_cast<int32_t>(group.keys.latent_width);
  info.value_latent_width = static_cast<int32_t>(group.values.latent_width);
  info.key_band_count = static_cast<int32_t>(plan.keys.size());
  info.value_band_count = static_cast<int32_t>(plan.values.size());
  info.scale_group = group.scale_group;
  info.rotated = group.rotated ? 1 : 0;
  info.correction_rank = group.correction.rank;
  info.bytes_per_token = latent_token_bytes(latent_layout(latent_format(group, plan)));
  // Means of keys and values and the correction basis, in 16-bit numbers.
  info.bytes_per_sequence = group.stacked_width() * 2 * ((profile.centred ? 2 : 0) + group.correction.rank);
  info.bytes_per_sequence += group.stacked_width() * numbers_of_own_bases(group, plan) * 4;
  info.kind = static_cast<int32_t>(group.kind);
  info.expected_key_cost = key_cost;
  info.expected_value_cost = value_cost;
  return info;
}

StatusOr<const ProfileGroup*> find_group(const foldkv_profile* profile, int32_t group) {
  FOLDKV_RETURN_IF_ERROR(require(profile, "profile"));
  const auto count = static_cast<int32_t>(profile->object->groups.size());
  if (group < 0 || group >= count) {
    return argument_error("group", absl::StrCat("is ", group, ", the profile has ", count, " groups"));
  }
  return &profile->object->groups[static_cast<size_t>(group)];
}

StatusOr<const Plan*> find_plan(const foldkv_profile* profile, int32_t plan) {
  FOLDKV_RETURN_IF_ERROR(require(profile, "profile"));
  const auto count = static_cast<int32_t>(profile->object->plans.size());
  if (plan < 0 || plan >= count) {
    return argument_error("plan", absl::StrCat("is ", plan, ", the profile has ", count, " plans"));
  }
  return &profile->object->plans[static_cast<size_t>(plan)];
}

StatusOr<const ProfileSide*> find_side(const ProfileGroup& group, int32_t side) {
  FOLDKV_RETURN_IF_ERROR(check_side(side, "side"));
  return side == FOLDKV_KEYS ? &group.keys : &group.values;
}

// [group_count][2], keys then values.
SideNumbers read_side_numbers(const double* source, size_t group_count) {
  SideNumbers numbers(source == nullptr ? 0 : group_count);
  for (size_t group = 0; group < numbers.size(); ++group) numbers[group] = {source[2 * group], source[2 * group + 1]};
  return numbers;
}

StatusOr<std::vector<PlanWish>> read_wishes(const foldkv_plan_options* source, int32_t count, size_t group_count) {
  if (count < 1 || count > kMaxPlans) {
    return argument_error("plan_count", absl::StrCat("is ", count, ", expected 1 to ", kMaxPlans));
  }
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<foldkv_plan_options> options, read_structs(source, count, "plans"));
  std::vector<PlanWish> wishes;
  for (size_t index = 0; index < options.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(require(options[index].name, absl::StrCat("plans[", index, "].name")));
    wishes.push_back({options[index].name, options[index].bytes_per_token, options[index].ratio,
                      options[index].value_weight == 0.0 ? 1.0 : options[index].value_weight,
                      read_side_numbers(options[index].group_weights, group_count)});
  }
  return wishes;
}

StatusOr<CodecWish> read_codec(const foldkv_model& model, const foldkv_codec_options* source) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_codec_options options, read_struct(source, "options"));
  CodecWish wish;
  wish.codec = static_cast<CodecName>(options.codec);
  wish.bits = options.bits;
  wish.layers_per_group = options.layers_per_group;
  wish.key_rank = options.key_rank;
  wish.value_rank = options.value_rank;
  if (options.interpolation != 0.0) wish.interpolation = options.interpolation;
  if (options.retained != 0.0) wish.retained = options.retained == -1.0 ? 0.0 : options.retained;
  wish.first_layer = options.first_layer;
  wish.made_by = absl::StrCat("foldkv ", foldkv_version());
  if (wish.codec != CodecName::kKvSharer) return wish;
  FOLDKV_RETURN_IF_ERROR(require(options.sources, "options.sources"));
  wish.sources.assign(options.sources, options.sources + model.object->layer_count());
  return wish;
}

// An array the caller made must hold all of it.
Status check_array(const void* array, absl::string_view name, int32_t capacity, size_t needed) {
  FOLDKV_RETURN_IF_ERROR(require(array, name));
  if (capacity >= 0 && static_cast<size_t>(capacity) >= needed) return absl::OkStatus();
  return argument_error("capacity", absl::StrCat("is ", capacity, ", expected ", needed, " or more"));
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_profile_load(const void* bytes, size_t size, foldkv_profile** profile, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(bytes, "bytes"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_ASSIGN_OR_RETURN(foldkv::Profile read, foldkv::read_profile(bytes, size));
    *profile = new foldkv_profile{std::make_shared<const foldkv::Profile>(std::move(read))};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_save(const foldkv_profile* profile, void* buffer, size_t capacity, size_t* size,
                                  foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(size, "size"));
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, foldkv::write_profile(*profile->object));
    return foldkv::abi::write_bytes(bytes, buffer, capacity, size);
  });
}

foldkv_status foldkv_profile_check(const foldkv_profile* profile, const foldkv_model* model, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(model, "model"));
    return foldkv::check_profile(*profile->object, *model->object);
  });
}

void foldkv_profile_release(foldkv_profile* profile) { delete profile; }

foldkv_status foldkv_profile_get_info(const foldkv_profile* profile, foldkv_profile_info* info,
                                      foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(info, "info"));
    foldkv::abi::write_struct(foldkv::abi::profile_info(*profile->object), info);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_plan(const foldkv_profile* profile, const foldkv_plan_options* plans, int32_t plan_count,
                                  foldkv_profile** planned, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(planned, "planned"));
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<foldkv::PlanWish> wishes,
                            foldkv::abi::read_wishes(plans, plan_count, profile->object->groups.size()));
    FOLDKV_ASSIGN_OR_RETURN(foldkv::Profile made, foldkv::plan_bits(*profile->object, wishes));
    *planned = new foldkv_profile{std::make_shared<const foldkv::Profile>(std::move(made))};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_from_codec(const foldkv_model* model, const foldkv_codec_options* options,
                                        foldkv_profile** profile, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(model, "model"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::CodecWish wish, foldkv::abi::read_codec(*model, options));
    foldkv::StatusOr<foldkv::Profile> made = foldkv::make_codec_profile(*model->object, wish);
    if (!made.ok()) {
      return foldkv::with_argument(made.status(), absl::StrCat("options.", foldkv::argument_of(made.status())));
    }
    *profile = new foldkv_profile{std::make_shared<const foldkv::Profile>(*std::move(made))};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_group_weights(const foldkv_profile* profile, int32_t plan, const double* measured,
                                           double* weights, int32_t capacity, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::Plan* found, foldkv::abi::find_plan(profile, plan));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(measured, "measured"));
    const size_t group_count = profile->object->groups.size();
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_array(weights, "weights", capacity, 2 * group_count));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::SideNumbers result,
                            foldkv::group_weights(foldkv::abi::read_side_numbers(measured, group_count),
                                                  foldkv::expected_costs(*profile->object, *found)));
    for (const auto& [keys, values] : result) {
      *weights++ = keys;
      *weights++ = values;
    }
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_record_divergence(const foldkv_profile* profile, const char* plan, double divergence,
                                               int64_t tokens, foldkv_profile** recorded, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(recorded, "recorded"));
    FOLDKV_ASSIGN_OR_RETURN(
        foldkv::Profile made,
        foldkv::record_divergence(*profile->object, plan == nullptr ? "" : plan, divergence, tokens));
    *recorded = new foldkv_profile{std::make_shared<const foldkv::Profile>(std::move(made))};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_plan(const foldkv_profile* profile, int32_t plan, foldkv_plan_info* info,
                                      foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::Plan* found, foldkv::abi::find_plan(profile, plan));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(info, "info"));
    foldkv::abi::write_struct(foldkv::abi::plan_info(*profile->object, *found), info);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_group(const foldkv_profile* profile, int32_t plan, int32_t group,
                                       foldkv_group_info* info, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::Plan* chosen, foldkv::abi::find_plan(profile, plan));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::find_group(profile, group).status());
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(info, "info"));
    foldkv::abi::write_struct(foldkv::abi::group_info(*profile->object, *chosen, static_cast<size_t>(group)), info);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_layers(const foldkv_profile* profile, int32_t group, int32_t* layers,
                                        int32_t capacity, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::ProfileGroup* found, foldkv::abi::find_group(profile, group));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_array(layers, "layers", capacity, found->layers.size()));
    std::copy(found->layers.begin(), found->layers.end(), layers);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_sources(const foldkv_profile* profile, int32_t* sources, int32_t capacity,
                                         foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    const foldkv::Profile& object = *profile->object;
    FOLDKV_RETURN_IF_ERROR(
        foldkv::abi::check_array(sources, "sources", capacity, static_cast<size_t>(object.layer_count)));
    if (object.sources.empty()) {
      std::iota(sources, sources + object.layer_count, 0);
    } else {
      std::copy(object.sources.begin(), object.sources.end(), sources);
    }
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_bands(const foldkv_profile* profile, int32_t plan, int32_t group, int32_t side,
                                       foldkv_band* bands, int32_t capacity, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::Plan* chosen, foldkv::abi::find_plan(profile, plan));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::find_group(profile, group).status());
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_side(side, "side"));
    const foldkv::GroupPlan& sides = chosen->groups[static_cast<size_t>(group)];
    const std::vector<foldkv::Band>& found = side == FOLDKV_KEYS ? sides.keys : sides.values;
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_array(bands, "bands", capacity, found.size()));
    std::transform(found.begin(), found.end(), bands,
                   [](const foldkv::Band& band) {
                     return foldkv_band{band.width, band.bits, static_cast<int32_t>(band.code), band.step};
                   });
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_variances(const foldkv_profile* profile, int32_t group, int32_t side,
                                           double* variances, int32_t capacity, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::ProfileGroup* found, foldkv::abi::find_group(profile, group));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::ProfileSide* chosen, foldkv::abi::find_side(*found, side));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_array(variances, "variances", capacity, chosen->variances.size()));
    std::copy(chosen->variances.begin(), chosen->variances.end(), variances);
    return absl::OkStatus();
  });
}

}  // extern "C"
