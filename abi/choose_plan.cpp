#include "runtime/cache/choose_plan.h"

#include <cmath>
#include <limits>
#include <string>

#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_options.h"
#include "abi/read_struct.h"
#include "runtime/base/check_range.h"

namespace foldkv::abi {
namespace {

// 0: no such wish.
Status check_number(double number, double least, absl::string_view argument) {
  if (number == 0.0 || (number >= least && std::isfinite(number))) return absl::OkStatus();
  const char* none = least == 0.0 ? "" : "0 or ";
  return argument_error(argument, absl::StrCat("is ", number, ", expected ", none, least, " or more"));
}

Status check_wish(const foldkv_plan_wish& wish) {
  if (wish.reserved != 0) return argument_error("wish.reserved", "is not zero");
  constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (wish.budget_bytes > kLargest) {
    return argument_error("wish.budget_bytes",
                          absl::StrCat("is ", wish.budget_bytes, ", expected ", kLargest, " at most"));
  }
  constexpr int64_t kMostCount = std::numeric_limits<int32_t>::max();
  FOLDKV_RETURN_IF_ERROR(check_range("wish.tokens", wish.tokens, wish.budget_bytes > 0 ? 1 : 0, kMostCount));
  FOLDKV_RETURN_IF_ERROR(check_range("wish.sequences", wish.sequences, 0, kMostCount));
  FOLDKV_RETURN_IF_ERROR(check_range("wish.generated_tokens", wish.generated_tokens, 0, kMostCount));
  FOLDKV_RETURN_IF_ERROR(check_number(wish.bytes_per_token, 0.0, "wish.bytes_per_token"));
  FOLDKV_RETURN_IF_ERROR(check_number(wish.ratio, 1.0, "wish.ratio"));
  FOLDKV_RETURN_IF_ERROR(check_number(wish.highest_cost, 0.0, "wish.highest_cost"));
  if (!(wish.lowest_keep_ratio >= 0.0 && wish.lowest_keep_ratio <= 1.0)) {
    return argument_error("wish.lowest_keep_ratio", absl::StrCat("is ", wish.lowest_keep_ratio, ", expected 0 to 1"));
  }
  return check_number(wish.highest_divergence, 0.0, "wish.highest_divergence");
}

// Errors name a field of "options".
StatusOr<SequencePolicy> read_policy(const foldkv_plan_wish& wish, const Model& model,
                                     const foldkv_profile* profile) {
  StatusOr<SequencePolicy> policy = read_sequence_options(wish.sequence_options, model, profile);
  if (!policy.ok()) return with_argument(policy.status(), absl::StrCat("wish.sequence_", argument_of(policy.status())));
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_sequence_options options,
                          read_optional_struct(wish.sequence_options, "wish.sequence_options"));
  if (options.plan != nullptr) {
    return argument_error("wish.sequence_options.plan", "is set, expected NULL: the plan is what is chosen");
  }
  return policy;
}

StatusOr<PlanChoice> choose(const foldkv_runtime* runtime, const foldkv_model* model, const foldkv_profile* profile,
                            const foldkv_plan_wish& wish) {
  FOLDKV_RETURN_IF_ERROR(check_wish(wish));
  CacheWish question;
  FOLDKV_ASSIGN_OR_RETURN(question.life.policy, read_policy(wish, *model->object, profile));
  FOLDKV_ASSIGN_OR_RETURN(question.life.rules,
                          read_step_options(wish.step_options, "wish.step_options", *model->object));
  question.life.prompt_tokens = wish.tokens;
  question.life.generated_tokens = wish.generated_tokens;
  question.lowest_keep_ratio = wish.lowest_keep_ratio;
  question.sequences = wish.sequences == 0 ? 1 : wish.sequences;
  question.budget_bytes = static_cast<int64_t>(wish.budget_bytes);
  question.bytes_per_token = wish.bytes_per_token;
  question.ratio = wish.ratio;
  question.highest_cost = wish.highest_cost;
  question.highest_divergence = wish.highest_divergence;
  return choose_plan(*runtime->object, model->object, profile->object, question);
}

// Cut to its room with dots at the end.
template <size_t kCapacity>
void write_sentence(char (&target)[kCapacity], const std::string& text) {
  write_text(target, text.size() < kCapacity ? text : text.substr(0, kCapacity - 4) + "...");
}

foldkv_plan_choice public_choice(const PlanChoice& choice, const Profile& profile, uint64_t budget_bytes) {
  foldkv_plan_choice result{};
  result.plan = static_cast<int32_t>(choice.plan);
  write_text(result.name, profile.plans[static_cast<size_t>(choice.plan)].name);
  result.bytes_per_token = choice.bytes_per_token;
  result.expected_cost = choice.expected_cost;
  result.tokens_kept = choice.tokens_kept;
  result.keep_ratio = choice.keep_ratio;
  result.sequence_bytes = static_cast<uint64_t>(choice.bytes.sequence);
  result.shared_bytes = static_cast<uint64_t>(choice.bytes.shared);
  result.total_bytes = static_cast<uint64_t>(choice.bytes.total);
  result.budget_bytes = budget_bytes;
  write_sentence(result.explanation, choice.explanation);
  return result;
}

}  // namespace
}  // namespace foldkv::abi

extern "C" foldkv_status foldkv_profile_choose_plan(const foldkv_runtime* runtime, const foldkv_model* model,
                                                    const foldkv_profile* profile, const foldkv_plan_wish* wish,
                                                    foldkv_plan_choice* choice, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(runtime, "runtime"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(model, "model"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(profile, "profile"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv_plan_wish asked, foldkv::abi::read_struct(wish, "wish"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(choice, "choice"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::PlanChoice chosen,
                            foldkv::abi::choose(runtime, model, profile, asked));
    foldkv::abi::write_struct(foldkv::abi::public_choice(chosen, *profile->object, asked.budget_bytes), choice);
    return absl::OkStatus();
  });
}
