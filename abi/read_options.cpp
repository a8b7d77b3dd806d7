#include "abi/read_options.h"

#include <string>

#include "abi/read_eviction.h"
#include "abi/read_struct.h"

namespace foldkv::abi {
namespace {

// 0: the default, -1: none (stored as 0 here), else the number itself.
StatusOr<int64_t> count_or(int32_t value, int64_t fallback, absl::string_view argument) {
  if (value < -1) return argument_error(argument, absl::StrCat("is ", value, ", expected -1 or more"));
  if (value == 0) return fallback;
  return value == -1 ? 0 : value;
}

StatusOr<size_t> read_plan(const char* name, const foldkv_profile* profile) {
  if (name == nullptr) return 0;
  if (profile == nullptr) {
    return argument_error("options.plan", absl::StrCat("is \"", name, "\", expected NULL without a profile"));
  }
  const StatusOr<int64_t> found = find_plan(*profile->object, name);
  if (!found.ok()) return with_argument(found.status(), "options.plan");
  return static_cast<size_t>(*found);
}

}  // namespace

StatusOr<SequencePolicy> read_sequence_options(const foldkv_sequence_options* source, const Model& model,
                                               const foldkv_profile* profile) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_sequence_options options, read_optional_struct(source, "options"));
  SequencePolicy policy;
  if (options.dtype < 0 || options.dtype > FOLDKV_BF16) {
    return argument_error("options.dtype", absl::StrCat("is ", options.dtype, ", expected 0 to 3"));
  }
  if (options.dtype != 0) policy.format = static_cast<NumberFormat>(options.dtype);
  FOLDKV_ASSIGN_OR_RETURN(policy.sink_tokens, count_or(options.sink_tokens, policy.sink_tokens, "options.sink_tokens"));
  FOLDKV_ASSIGN_OR_RETURN(policy.recent_tokens,
                          count_or(options.recent_tokens, policy.recent_tokens, "options.recent_tokens"));
  FOLDKV_ASSIGN_OR_RETURN(const int64_t fold,
                          count_or(options.fold_tokens, *policy.fold_tokens, "options.fold_tokens"));
  policy.fold_tokens = fold == 0 ? std::nullopt : std::optional<int64_t>(fold);
  if (options.mean < FOLDKV_MEAN_DEFAULT || options.mean > FOLDKV_MEAN_PROFILE) {
    return argument_error("options.mean", absl::StrCat("is ", options.mean, ", expected 0 to 2"));
  }
  if (options.mean == FOLDKV_MEAN_PROFILE) policy.mean = MeanSource::kProfile;
  if (options.arithmetic < 0 || options.arithmetic > FOLDKV_ARITHMETIC_FAST) {
    return argument_error("options.arithmetic", absl::StrCat("is ", options.arithmetic, ", expected 0 to 2"));
  }
  if (options.reserved != 0) return argument_error("options.reserved", "is not zero");
  if (options.arithmetic == FOLDKV_ARITHMETIC_FAST) policy.arithmetic = backend::Arithmetic::kFast;
  FOLDKV_ASSIGN_OR_RETURN(policy.plan, read_plan(options.plan, profile));
  FOLDKV_ASSIGN_OR_RETURN(policy.eviction, read_eviction(options.eviction, model));
  return policy;
}

StatusOr<StepRules> read_step_options(const foldkv_step_options* source, absl::string_view argument,
                                      const Model& model) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_step_options options, read_optional_struct(source, argument));
  const std::string name(argument);
  if (options.input < FOLDKV_INPUT_DEFAULT || options.input > FOLDKV_INPUT_QKV) {
    return argument_error(name + ".input", absl::StrCat("is ", options.input, ", expected 0 to 2"));
  }
  if (options.output < FOLDKV_OUTPUT_DEFAULT || options.output > FOLDKV_OUTPUT_PROJECTED) {
    return argument_error(name + ".output", absl::StrCat("is ", options.output, ", expected 0 to 2"));
  }
  StepRules rules;
  rules.hidden_input =
      options.input == FOLDKV_INPUT_HIDDEN || (options.input == FOLDKV_INPUT_DEFAULT && model.has_weights());
  rules.projected_output = options.output == FOLDKV_OUTPUT_PROJECTED;
  rules.cancellation = Cancellation(options.cancel);
  return rules;
}

}  // namespace foldkv::abi
