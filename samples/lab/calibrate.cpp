#include "samples/lab/calibrate.h"

#include <memory>
#include <utility>

#include "samples/lab/decoder.h"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/observe_cache_gradients.h"
#include "samples/lab/plan_ratios.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {

absl::StatusOr<foldkv::Profile> calibrate(FoldkvHost& host, const std::vector<TextSample>& samples,
                                          const CalibrationOptions& options,
                                          absl::FunctionRef<void(int64_t)> progress) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Calibrator calibrator, "creating a calibrator",
                              foldkv::Calibrator::create(host.runtime(), host.foldkv_model(), options.calibrator));
  FoldkvAttention::Options attention_options;
  attention_options.sequence.dtype = FOLDKV_F32;
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvAttention> attention,
                       FoldkvAttention::create(host, nullptr, attention_options));
  Decoder decoder(host.model(), *attention, host.threads());
  std::vector<float> no_logits;
  int64_t tokens_done = 0;
  for (const TextSample& sample : samples) {
    LAB_RETURN_IF_ERROR(attention->clear());
    LAB_RETURN_IF_FOLDKV_ERROR("attaching the calibrator", calibrator.attach(attention->sequence()));
    LAB_RETURN_IF_ERROR(decoder.feed(sample.tokens, 0, &no_logits, Decoder::kDefaultChunk,
                                     [&](int64_t fed) { progress(tokens_done + fed); }));
    tokens_done += static_cast<int64_t>(sample.tokens.size());
    if (!options.gradients) continue;
    LAB_RETURN_IF_ERROR(observe_cache_gradients(host, attention->sequence(), sample,
                                                static_cast<uint64_t>(tokens_done), calibrator));
  }
  LAB_RETURN_IF_FOLDKV_ERROR("detaching the calibrator", foldkv::Calibrator::detach_from(attention->sequence()));
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile profile, "solving for a profile", calibrator.solve(options.solve));
  if (options.ratios.empty()) return profile;
  return plan_ratios(profile, options.ratios);
}

}  // namespace foldkv_lab
