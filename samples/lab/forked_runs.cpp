#include "samples/lab/forked_runs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/decoder.h"
#include "samples/lab/divergence.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {

absl::StatusOr<ForkedRuns> ForkedRuns::create(FoldkvHost& host, const FoldkvAttention::Options& options,
                                              std::span<const Token> tokens, int64_t prefix) {
  if (prefix < 1 || prefix >= static_cast<int64_t>(tokens.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a prefix of ", prefix, " in a text of ", tokens.size(), " tokens; expected one inside the text"));
  }
  FoldkvAttention::Options exact = options;
  exact.plan.clear();
  exact.eviction.reset();
  exact.sequence.dtype = FOLDKV_F32;
  LAB_ASSIGN_OR_RETURN(std::unique_ptr<FoldkvAttention> attention, FoldkvAttention::create(host, nullptr, exact));
  std::vector<float> no_logits;
  LAB_RETURN_IF_ERROR(Decoder(host.model(), *attention, host.threads())
                          .feed(tokens.first(static_cast<size_t>(prefix)), 0, &no_logits));
  ForkedRuns runs(host, std::move(attention), tokens.subspan(static_cast<size_t>(prefix)));
  LAB_ASSIGN_OR_RETURN(runs.reference_, runs.run([](foldkv::Sequence&) { return absl::OkStatus(); }));
  return runs;
}

absl::StatusOr<std::vector<float>> ForkedRuns::run(
    absl::FunctionRef<absl::Status(foldkv::Sequence& fork)> change) const {
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvAttention> fork, prefix_->fork());
  LAB_RETURN_IF_ERROR(change(fork->sequence()));
  std::vector<float> logits;
  // In one step, so that all runs make the same products.
  LAB_RETURN_IF_ERROR(
      Decoder(host_.model(), *fork, host_.threads()).feed(rest_, rest_count(), &logits, rest_count()));
  return logits;
}

absl::StatusOr<double> ForkedRuns::divergence_of(const std::vector<float>& logits) const {
  const size_t width = reference_.size() / rest_.size();
  double sum = 0;
  for (size_t row = 0; row < rest_.size(); ++row) {
    LAB_ASSIGN_OR_RETURN(const Divergence divergence,
                         compare_logits<float>(std::span(reference_).subspan(row * width, width),
                                               std::span(logits).subspan(row * width, width), -1));
    sum += divergence.kl;
  }
  return sum / static_cast<double>(rest_.size());
}

}  // namespace foldkv_lab
