#include "samples/lab/held_out.h"

#include <algorithm>
#include <string>
#include <utility>

#include "samples/lab/evaluate.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

constexpr int64_t kFedTokens = 64;  // in a step

absl::StatusOr<std::vector<Codec>> codecs_of(const foldkv::Profile& profile) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_profile_info info, "reading the profile", profile.info());
  std::vector<Codec> codecs;
  for (int32_t index = 0; index < info.plan_count; ++index) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_plan_info plan, "reading a plan", profile.plan_info(index));
    Codec codec{plan.name, &profile, {}};
    codec.options.plan = plan.name;
    codec.options.sequence.fold_tokens = -1;  // what is fed after the prefix stays exact
    codecs.push_back(std::move(codec));
  }
  return codecs;
}

}  // namespace

absl::StatusOr<foldkv::Profile> check_on_held_out(FoldkvHost& host, foldkv::Profile profile,
                                                  const std::vector<TextSample>& samples,
                                                  absl::FunctionRef<void(int64_t)> progress) {
  EvaluationOptions options;
  options.prefix = held_out_prefix(static_cast<int64_t>(samples[0].tokens.size()));
  options.feed = kFedTokens;
  LAB_ASSIGN_OR_RETURN(const std::vector<Codec> codecs, codecs_of(profile));
  LAB_ASSIGN_OR_RETURN(const Evaluation evaluation, evaluate(host, codecs, samples, options, progress));
  for (const CodecEvaluation& codec : evaluation.codecs) {
    // Of equal distributions rounding may leave a little less than nothing.
    const double divergence = std::max(codec.all.kl, 0.0);
    LAB_ASSIGN_OR_RETURN_FOLDKV(profile, "recording a divergence",
                                profile.record_divergence(codec.codec.c_str(), divergence, codec.all.positions));
  }
  return profile;
}

}  // namespace foldkv_lab
