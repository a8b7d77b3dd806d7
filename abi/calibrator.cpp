#include <algorithm>
#include <string>

#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_struct.h"
#include "abi/read_tensor.h"
#include "abi/write_bytes.h"
#include "absl/strings/strip.h"
#include "runtime/model/limits.h"
#include "runtime/profile/calibration_reader.h"
#include "runtime/profile/calibration_writer.h"

namespace foldkv::abi {
namespace {

constexpr int32_t kDefaultLayersPerGroup = 4;
constexpr int32_t kDefaultSkipTokens = 4;
constexpr int32_t kDefaultOversample = 8;
constexpr int32_t kLargestCount = 65536;

// Errors of the core name fields; callers know them as fields of options.
Status as_option(const Status& status) {
  const std::string argument = argument_of(status);
  if (argument.empty() || status.code() != absl::StatusCode::kInvalidArgument) return status;
  return with_argument(status, absl::StrCat("options.", argument));
}

// 0: the default, -1: none.
StatusOr<int32_t> count_or(int32_t value, int32_t fallback, absl::string_view argument) {
  if (value < -1 || value > kLargestCount) {
    return argument_error(argument, absl::StrCat("is ", value, ", expected -1 to ", kLargestCount));
  }
  return value == 0 ? fallback : value == -1 ? 0 : value;
}

Status check_count(int64_t value, int64_t lowest, absl::string_view argument) {
  if (value >= lowest && value <= kLargestCount) return absl::OkStatus();
  return argument_error(argument, absl::StrCat("is ", value, ", expected ", lowest, " to ", kLargestCount));
}

Status check_flag(int32_t value, absl::string_view argument) {
  if (value == 0 || value == 1) return absl::OkStatus();
  return argument_error(argument, absl::StrCat("is ", value, ", expected 0 or 1"));
}

StatusOr<std::vector<LayerGroup>> read_groups(const foldkv_calibrator_options& options) {
  FOLDKV_RETURN_IF_ERROR(check_count(options.group_count, 0, "options.group_count"));
  std::vector<LayerGroup> groups;
  if (options.groups == nullptr && options.group_count == 0) return groups;
  FOLDKV_RETURN_IF_ERROR(check_count(options.group_count, 1, "options.group_count"));
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<foldkv_layer_group> sources,
                          read_structs(options.groups, options.group_count, "options.groups"));
  for (size_t index = 0; index < sources.size(); ++index) {
    const std::string name = absl::StrCat("options.groups[", index, "]");
    FOLDKV_RETURN_IF_ERROR(check_count(sources[index].layer_count, 1, name + ".layer_count"));
    FOLDKV_RETURN_IF_ERROR(require(sources[index].layers, name + ".layers"));
    groups.emplace_back(sources[index].layers, sources[index].layers + sources[index].layer_count);
  }
  return groups;
}

StatusOr<std::shared_ptr<Calibrator>> create_calibrator(const foldkv_runtime* runtime, const foldkv_model* model,
                                                        const foldkv_calibrator_options* source) {
  FOLDKV_RETURN_IF_ERROR(require(runtime, "runtime"));
  FOLDKV_RETURN_IF_ERROR(require(model, "model"));
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_calibrator_options options, read_optional_struct(source, "options"));
  FOLDKV_RETURN_IF_ERROR(check_count(options.layers_per_group, 0, "options.layers_per_group"));
  CalibratorOptions rules;
  rules.layers_per_group = options.layers_per_group == 0 ? kDefaultLayersPerGroup : options.layers_per_group;
  FOLDKV_ASSIGN_OR_RETURN(rules.groups, read_groups(options));
  FOLDKV_ASSIGN_OR_RETURN(rules.skip_tokens,
                          count_or(options.skip_tokens, kDefaultSkipTokens, "options.skip_tokens"));
  StatusOr<std::shared_ptr<Calibrator>> created =
      Calibrator::create(runtime->object->shared_backend(), model->object, rules);
  if (!created.ok()) return as_option(created.status());
  return created;
}

// The tensors of all layers, all of one token count.
StatusOr<std::vector<TensorView>> read_layers(const foldkv_tensor* tensors, const Model& model,
                                              absl::string_view name) {
  FOLDKV_RETURN_IF_ERROR(require(tensors, name));
  std::vector<TensorView> views;
  int64_t tokens = kAnySize;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    const LayerRules& rules = model.layer(layer);
    const std::string element = absl::StrCat(name, "[", layer, "]");
    FOLDKV_ASSIGN_OR_RETURN(const TensorView view,
                            read_tensor(tensors[layer], {element, {tokens, rules.kv_heads, rules.head_size}}));
    tokens = view.row_count;
    views.push_back(view);
  }
  return views;
}

enum class Observed { kRows, kGradients };

Status observe(Calibrator& calibrator, Observed observed, const foldkv_tensor* keys, const foldkv_tensor* values,
               int32_t layer_count, int64_t first_token) {
  const Model& model = calibrator.model();
  if (layer_count != model.layer_count()) {
    return argument_error("layer_count",
                          absl::StrCat("is ", layer_count, ", the model has ", model.layer_count()));
  }
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<TensorView> key_views, read_layers(keys, model, "keys"));
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<TensorView> value_views, read_layers(values, model, "values"));
  return observed == Observed::kRows ? calibrator.observe(key_views, value_views, first_token)
                                     : calibrator.observe_gradients(key_views, value_views, first_token);
}

StatusOr<std::vector<Band>> read_bands(const foldkv_band* source, int32_t count, absl::string_view name) {
  const std::string count_name = absl::StrCat(absl::StripSuffix(name, "s"), "_count");  // key_bands, key_band_count
  FOLDKV_RETURN_IF_ERROR(check_count(count, 0, count_name));
  std::vector<Band> bands;
  if (count == 0 && source == nullptr) return bands;
  FOLDKV_RETURN_IF_ERROR(check_count(count, 1, count_name));
  FOLDKV_RETURN_IF_ERROR(require(source, name));
  for (int32_t index = 0; index < count; ++index) {
    const foldkv_band& band = source[index];
    bands.push_back({band.width, band.bits, static_cast<backend::Code>(band.code), band.step == 0 ? 1 : band.step});
  }
  return bands;
}

StatusOr<CorrectionRules> read_correction(const foldkv_solve_options& options) {
  CorrectionRules rules;
  FOLDKV_RETURN_IF_ERROR(check_count(options.correction_rank, 0, "options.correction_rank"));
  FOLDKV_RETURN_IF_ERROR(check_count(options.correction_oversample, 0, "options.correction_oversample"));
  if (options.correction_rank == 0) return rules;
  rules.rank = options.correction_rank;
  rules.oversample = options.correction_oversample == 0 ? kDefaultOversample : options.correction_oversample;
  FOLDKV_ASSIGN_OR_RETURN(rules.iterations,
                          count_or(options.correction_iterations, 1, "options.correction_iterations"));
  rules.seed = options.seed;
  return rules;
}

StatusOr<SolveOptions> read_solve_options(const foldkv_solve_options* source) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_solve_options options, read_optional_struct(source, "options"));
  SolveOptions rules;
  if (options.latent_width < 0) {
    return argument_error("options.latent_width", absl::StrCat("is ", options.latent_width, ", expected 0 or more"));
  }
  FOLDKV_RETURN_IF_ERROR(check_flag(options.rotate, "options.rotate"));
  FOLDKV_RETURN_IF_ERROR(check_flag(options.uncentred, "options.uncentred"));
  rules.latent_width = std::min<int64_t>(options.latent_width, kMaxWidth);
  if (options.bits != 0) rules.bits = options.bits;
  if (options.scale_group != 0) rules.scale_group = options.scale_group;
  rules.rotate = options.rotate == 1;
  rules.centred = options.uncentred == 0;
  FOLDKV_RETURN_IF_ERROR(check_flag(options.use_metric, "options.use_metric"));
  rules.use_metric = options.use_metric == 1;
  if (options.metric_floor != 0.0) rules.metric_floor = options.metric_floor;
  rules.cancellation = Cancellation(options.cancel);
  FOLDKV_ASSIGN_OR_RETURN(rules.key_bands, read_bands(options.key_bands, options.key_band_count, "options.key_bands"));
  FOLDKV_ASSIGN_OR_RETURN(rules.value_bands,
                          read_bands(options.value_bands, options.value_band_count, "options.value_bands"));
  FOLDKV_ASSIGN_OR_RETURN(rules.correction, read_correction(options));
  rules.made_by = absl::StrCat("foldkv ", foldkv_version());
  return rules;
}

foldkv_calibrator_info calibrator_info(const Calibrator& calibrator) {
  foldkv_calibrator_info info{};
  info.group_count = static_cast<int32_t>(calibrator.groups().size());
  info.samples = calibrator.sample_count();
  info.rows = calibrator.row_count();
  info.gradient_rows = calibrator.gradient_row_count();
  return info;
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_calibrator_create(foldkv_runtime* runtime, const foldkv_model* model,
                                       const foldkv_calibrator_options* options, foldkv_calibrator** calibrator,
                                       foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    FOLDKV_ASSIGN_OR_RETURN(std::shared_ptr<foldkv::Calibrator> created,
                            foldkv::abi::create_calibrator(runtime, model, options));
    *calibrator = new foldkv_calibrator{std::move(created)};
    return absl::OkStatus();
  });
}

void foldkv_calibrator_release(foldkv_calibrator* calibrator) { delete calibrator; }

foldkv_status foldkv_calibrator_observe(foldkv_calibrator* calibrator, const foldkv_tensor* keys,
                                        const foldkv_tensor* values, int32_t layer_count, int64_t first_token,
                                        foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    return foldkv::abi::observe(*calibrator->object, foldkv::abi::Observed::kRows, keys, values, layer_count,
                                first_token);
  });
}

foldkv_status foldkv_calibrator_observe_gradients(foldkv_calibrator* calibrator, const foldkv_tensor* keys,
                                                  const foldkv_tensor* values, int32_t layer_count,
                                                  int64_t first_token, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    return foldkv::abi::observe(*calibrator->object, foldkv::abi::Observed::kGradients, keys, values, layer_count,
                                first_token);
  });
}

foldkv_status foldkv_calibrator_attach(foldkv_calibrator* calibrator, foldkv_sequence* sequence,
                                       foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return sequence->object->attach(calibrator == nullptr ? nullptr : calibrator->object);
  });
}

foldkv_status foldkv_calibrator_merge(foldkv_calibrator* calibrator, const foldkv_calibrator* other,
                                      foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(other, "other"));
    return calibrator->object->merge(*other->object);
  });
}

foldkv_status foldkv_calibrator_get_info(const foldkv_calibrator* calibrator, foldkv_calibrator_info* info,
                                         foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(info, "info"));
    foldkv::abi::write_struct(foldkv::abi::calibrator_info(*calibrator->object), info);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_calibrator_save(const foldkv_calibrator* calibrator, void* buffer, size_t capacity, size_t* size,
                                     foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(size, "size"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::CalibrationContent content, calibrator->object->content());
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, foldkv::write_calibration(content));
    return foldkv::abi::write_bytes(bytes, buffer, capacity, size);
  });
}

foldkv_status foldkv_calibrator_load(foldkv_runtime* runtime, const foldkv_model* model, const void* bytes, size_t size,
                                     foldkv_calibrator** calibrator, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(runtime, "runtime"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(model, "model"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(bytes, "bytes"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::CalibrationContent content, foldkv::read_calibration(bytes, size));
    FOLDKV_ASSIGN_OR_RETURN(
        std::shared_ptr<foldkv::Calibrator> restored,
        foldkv::Calibrator::restore(runtime->object->shared_backend(), model->object, content));
    *calibrator = new foldkv_calibrator{std::move(restored)};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_calibrator_solve(const foldkv_calibrator* calibrator, const foldkv_solve_options* options,
                                      foldkv_profile** profile, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(calibrator, "calibrator"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::SolveOptions rules, foldkv::abi::read_solve_options(options));
    foldkv::StatusOr<foldkv::Profile> solved = calibrator->object->solve(rules);
    if (!solved.ok()) return foldkv::abi::as_option(solved.status());
    *profile = new foldkv_profile{std::make_shared<const foldkv::Profile>(std::move(*solved))};
    return absl::OkStatus();
  });
}

}  // extern "C"
