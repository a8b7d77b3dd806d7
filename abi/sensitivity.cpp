#include <algorithm>
#include <cstring>
#include <string>

#include "abi/check_place.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_struct.h"
#include "abi/read_tensor.h"

namespace foldkv::abi {
namespace {

foldkv_layer_sensitivity public_figures(const LayerSensitivity& figures) {
  foldkv_layer_sensitivity result{};
  result.divergence = figures.divergence;
  result.rows = figures.rows;
  result.examples = figures.examples;
  return result;
}

Status check_place(int32_t layer, int32_t side, int64_t layer_count) {
  FOLDKV_RETURN_IF_ERROR(check_layer(layer, "layer", layer_count));
  return check_side(side, "side");
}

Status add(Sensitivity& sensitivity, int32_t layer, int32_t side, const foldkv_tensor* reference,
           const foldkv_tensor* perturbed) {
  FOLDKV_RETURN_IF_ERROR(check_place(layer, side, sensitivity.model().layer_count()));
  FOLDKV_RETURN_IF_ERROR(require(reference, "reference"));
  FOLDKV_RETURN_IF_ERROR(require(perturbed, "perturbed"));
  const int64_t vocabulary = reference->rank == 2 ? std::max<int64_t>(reference->shape[1], 1) : 1;
  FOLDKV_ASSIGN_OR_RETURN(const TensorView intact,
                          read_tensor(*reference, {"reference", {kAnySize, vocabulary}, true}));
  FOLDKV_ASSIGN_OR_RETURN(const TensorView moved,
                          read_tensor(*perturbed, {"perturbed", {intact.row_count, vocabulary}, true}));
  return sensitivity.add(layer, static_cast<backend::Side>(side), intact, moved);
}

StatusOr<SensitivitySource> read_source(const foldkv_sensitivity_source* given) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_sensitivity_source source, read_struct(given, "source"));
  if (source.reserved != 0) return argument_error("source.reserved", "is not zero");
  const auto* end = static_cast<const char*>(std::memchr(source.text, 0, sizeof source.text));
  if (end == nullptr) {
    return argument_error("source.text", absl::StrCat("is not terminated within its ", sizeof source.text, " bytes"));
  }
  return SensitivitySource{source.scale, source.seed, std::string(source.text, end)};
}

StatusOr<Profile> with_sensitivity(const Profile& profile, const Sensitivity& sensitivity,
                                   const foldkv_sensitivity_source* given) {
  FOLDKV_ASSIGN_OR_RETURN(const SensitivitySource source, read_source(given));
  StatusOr<Profile> result = foldkv::with_sensitivity(profile, sensitivity, source);
  if (argument_of(result.status()) == "sensitivity.scale") return with_argument(result.status(), "source.scale");
  return result;
}

foldkv_sensitivity_source public_source(const ProfileSensitivity& sensitivity) {
  foldkv_sensitivity_source source{};
  source.scale = sensitivity.scale;
  source.seed = sensitivity.seed;
  write_text(source.text, sensitivity.text);
  return source;
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_sensitivity_create(const foldkv_model* model, foldkv_sensitivity** sensitivity,
                                        foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(model, "model"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sensitivity, "sensitivity"));
    *sensitivity = new foldkv_sensitivity{std::make_shared<foldkv::Sensitivity>(model->object)};
    return absl::OkStatus();
  });
}

void foldkv_sensitivity_release(foldkv_sensitivity* sensitivity) { delete sensitivity; }

foldkv_status foldkv_sensitivity_add(foldkv_sensitivity* sensitivity, int32_t layer, int32_t side,
                                     const foldkv_tensor* reference, const foldkv_tensor* perturbed,
                                     foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sensitivity, "sensitivity"));
    return foldkv::abi::add(*sensitivity->object, layer, side, reference, perturbed);
  });
}

foldkv_status foldkv_sensitivity_merge(foldkv_sensitivity* sensitivity, const foldkv_sensitivity* other,
                                       foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sensitivity, "sensitivity"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(other, "other"));
    return sensitivity->object->merge(*other->object);
  });
}

foldkv_status foldkv_sensitivity_get(const foldkv_sensitivity* sensitivity, int32_t layer, int32_t side,
                                     foldkv_layer_sensitivity* figures, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sensitivity, "sensitivity"));
    const foldkv::Sensitivity& object = *sensitivity->object;
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_place(layer, side, object.model().layer_count()));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(figures, "figures"));
    foldkv::abi::write_struct(
        foldkv::abi::public_figures(object.of(layer, static_cast<foldkv::backend::Side>(side))), figures);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_with_sensitivity(const foldkv_profile* profile, const foldkv_sensitivity* sensitivity,
                                              const foldkv_sensitivity_source* source, foldkv_profile** result,
                                              foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sensitivity, "sensitivity"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(result, "result"));
    FOLDKV_ASSIGN_OR_RETURN(foldkv::Profile made,
                            foldkv::abi::with_sensitivity(*profile->object, *sensitivity->object, source));
    *result = new foldkv_profile{std::make_shared<const foldkv::Profile>(std::move(made))};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_sensitivity(const foldkv_profile* profile, int32_t layer, int32_t side,
                                             foldkv_layer_sensitivity* figures, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_place(layer, side, profile->object->layer_count));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(figures, "figures"));
    foldkv::LayerSensitivity found;
    if (const auto& sensitivity = profile->object->sensitivity) {
      found = (side == FOLDKV_KEYS ? sensitivity->keys : sensitivity->values)[static_cast<size_t>(layer)];
    }
    foldkv::abi::write_struct(foldkv::abi::public_figures(found), figures);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_profile_get_sensitivity_source(const foldkv_profile* profile, foldkv_sensitivity_source* source,
                                                    foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(source, "source"));
    if (!profile->object->sensitivity) {
      return foldkv::with_argument(foldkv::state_error("the profile has no sensitivities"), "profile");
    }
    foldkv::abi::write_struct(foldkv::abi::public_source(*profile->object->sensitivity), source);
    return absl::OkStatus();
  });
}

}  // extern "C"
