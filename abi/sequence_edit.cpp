#include <algorithm>
#include <cmath>
#include <limits>

#include "abi/check_place.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_struct.h"
#include "abi/read_tensor.h"

// Forks of sequences, changes of what they hold, and of where and how they hold it.
namespace foldkv::abi {
namespace {

Status check_first_token(int64_t first_token, int64_t tokens) {
  if (first_token >= 0 && first_token < tokens) return absl::OkStatus();
  return argument_error("options.first_token",
                        absl::StrCat("is ", first_token, ", the sequence has ", tokens, " tokens"));
}

Status replace(Sequence& sequence, const foldkv_replace_options* source, const foldkv_tensor* rows) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_replace_options options, read_struct(source, "options"));
  FOLDKV_RETURN_IF_ERROR(require(rows, "rows"));
  FOLDKV_RETURN_IF_ERROR(check_layer(options.layer, "options.layer", sequence.model().layer_count()));
  FOLDKV_RETURN_IF_ERROR(check_side(options.side, "options.side"));
  if (options.reserved != 0) return argument_error("options.reserved", "is not zero");
  const int64_t tokens = sequence.held_tokens(options.layer, 0);
  FOLDKV_RETURN_IF_ERROR(check_first_token(options.first_token, tokens));
  const LayerRules& rules = sequence.model().layer(options.layer);
  FOLDKV_ASSIGN_OR_RETURN(const TensorView view,
                          read_tensor(*rows, {"rows", {kAnySize, rules.kv_heads, rules.head_size}}));
  if (view.row_count > tokens - options.first_token) {
    return argument_error("rows.shape", absl::StrCat("[0] is ", view.row_count, ", expected 1 to ",
                                                     tokens - options.first_token, ", the tokens from first_token on"));
  }
  return sequence.replace({options.layer, static_cast<backend::Side>(options.side), options.first_token}, view);
}

// The tokens to perturb: those asked for, or all from first_token on that are neither sinks nor recent.
Status set_range(const Sequence& sequence, const foldkv_perturb_options& options, PerturbQuestion& question) {
  const int64_t tokens = sequence.held_tokens(options.layer, 0);
  FOLDKV_RETURN_IF_ERROR(check_first_token(options.first_token, tokens));
  const int64_t left = tokens - options.first_token;
  if (options.token_count < 0 || options.token_count > left) {
    return argument_error("options.token_count", absl::StrCat("is ", options.token_count, ", expected 0 to ", left));
  }
  question.first_token = options.first_token;
  question.token_count = options.token_count;
  if (options.token_count > 0) return absl::OkStatus();
  const SequencePolicy& policy = sequence.policy();
  question.first_token = std::max(options.first_token, policy.sink_tokens);
  question.token_count = tokens - policy.recent_tokens - question.first_token;
  if (question.token_count > 0) return absl::OkStatus();
  const Status nothing =
      state_error(absl::StrCat("of ", tokens, " tokens all from ", options.first_token, " on are sinks (",
                               policy.sink_tokens, ") or recent (", policy.recent_tokens, ")"));
  return with_argument(nothing, "options.token_count");
}

Status set_plan(Sequence& sequence, const char* name) {
  const Profile* const profile = sequence.shared_profile()->data.profile.get();
  if (profile == nullptr) return with_argument(state_error("has no profile, and so no plans"), "sequence");
  const StatusOr<int64_t> plan = find_plan(*profile, name == nullptr ? "" : name);
  if (!plan.ok()) return with_argument(plan.status(), "plan");
  return sequence.set_plan(static_cast<size_t>(*plan));
}

foldkv_reclaimable public_reclaimable(const Reclaimable& source) {
  foldkv_reclaimable result{};
  result.smallest_plan = static_cast<int32_t>(source.smallest_plan);
  result.release = static_cast<uint64_t>(source.release);
  result.spill = static_cast<uint64_t>(source.spill);
  result.compress = static_cast<uint64_t>(source.compress);
  result.plan = static_cast<uint64_t>(source.plan);
  result.plan_room = static_cast<uint64_t>(source.plan_room);
  return result;
}

Status describe(const Sequence& sequence, char* text, size_t capacity, size_t* size) {
  FOLDKV_ASSIGN_OR_RETURN(std::string description, sequence.describe());
  description = absl::StrCat("FoldKV ", foldkv_version(), "\n", description);
  const size_t needed = description.size() + 1;
  if (text != nullptr && capacity < needed) {
    return argument_error("capacity", absl::StrCat("is ", capacity, ", expected ", needed, " or more"));
  }
  if (text != nullptr) std::copy_n(description.c_str(), needed, text);
  *size = needed;
  return absl::OkStatus();
}

Status perturb(Sequence& sequence, const foldkv_perturb_options* source) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_perturb_options options, read_struct(source, "options"));
  FOLDKV_RETURN_IF_ERROR(check_layer(options.layer, "options.layer", sequence.model().layer_count()));
  if (options.keys != 0 && options.keys != 1) {
    return argument_error("options.keys", absl::StrCat("is ", options.keys, ", expected 0 or 1"));
  }
  if (options.reserved != 0) return argument_error("options.reserved", "is not zero");
  if (!(options.scale > 0.0) || std::isinf(options.scale)) {
    return argument_error("options.scale", absl::StrCat("is ", options.scale, ", expected a number above 0"));
  }
  constexpr int64_t kLargest = std::numeric_limits<uint32_t>::max();
  if (options.example < 0 || options.example > kLargest) {
    return argument_error("options.example", absl::StrCat("is ", options.example, ", expected 0 to ", kLargest));
  }
  PerturbQuestion question;
  question.layer = options.layer;
  question.side = options.keys == 1 ? backend::Side::kKeys : backend::Side::kValues;
  question.scale = options.scale;
  question.seed = options.seed;
  question.example = static_cast<uint32_t>(options.example);
  FOLDKV_RETURN_IF_ERROR(set_range(sequence, options, question));
  return sequence.perturb(question);
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_sequence_fork(const foldkv_sequence* sequence, foldkv_sequence** fork, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(fork, "fork"));
    FOLDKV_ASSIGN_OR_RETURN(std::shared_ptr<foldkv::Sequence> copy, sequence->object->fork());
    *fork = new foldkv_sequence{std::move(copy)};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_sequence_truncate(foldkv_sequence* sequence, int64_t position, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return sequence->object->truncate(position);
  });
}

foldkv_status foldkv_sequence_replace(foldkv_sequence* sequence, const foldkv_replace_options* options,
                                      const foldkv_tensor* rows, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return foldkv::abi::replace(*sequence->object, options, rows);
  });
}

foldkv_status foldkv_sequence_perturb(foldkv_sequence* sequence, const foldkv_perturb_options* options,
                                      foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return foldkv::abi::perturb(*sequence->object, options);
  });
}

foldkv_status foldkv_sequence_set_plan(foldkv_sequence* sequence, const char* plan, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return foldkv::abi::set_plan(*sequence->object, plan);
  });
}

foldkv_status foldkv_sequence_spill(foldkv_sequence* sequence, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return sequence->object->spill();
  });
}

foldkv_status foldkv_sequence_get_reclaimable(const foldkv_sequence* sequence, foldkv_reclaimable* reclaimable,
                                              foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(reclaimable, "reclaimable"));
    foldkv::abi::write_struct(foldkv::abi::public_reclaimable(sequence->object->reclaimable()), reclaimable);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_sequence_describe(const foldkv_sequence* sequence, char* text, size_t capacity, size_t* size,
                                       foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(size, "size"));
    return foldkv::abi::describe(*sequence->object, text, capacity, size);
  });
}

}  // extern "C"
