#include "samples/lab/layer_damages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "samples/lab/evaluate.h"
#include "samples/lab/named_policy.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

absl::StatusOr<Codec> cut_layer(int32_t layer, int64_t layers, const DamageOptions& options) {
  Codec codec{absl::StrCat("layer ", layer), nullptr, options.attention};
  codec.options.sequence.dtype = FOLDKV_F32;
  LAB_ASSIGN_OR_RETURN(Eviction eviction, named_policy("snapkv", {.tokens = options.kept_tokens}, {}));
  const auto quarter = static_cast<int32_t>(options.kept_tokens / 4);
  eviction.settings.window_tokens = std::clamp(quarter, 1, eviction.settings.window_tokens);
  for (int32_t other = 0; other < layers; ++other) {
    if (other != layer) eviction.exempt_layers.push_back(other);
  }
  codec.options.eviction = std::move(eviction);
  return codec;
}

}  // namespace

absl::StatusOr<std::vector<double>> layer_damages(FoldkvHost& host, const std::vector<TextSample>& texts,
                                                  const DamageOptions& options,
                                                  absl::FunctionRef<void(int64_t)> progress) {
  const int64_t layers = host.model().shape.layer_count;
  std::vector<Codec> codecs;
  for (int32_t layer = 0; layer < layers; ++layer) {
    LAB_ASSIGN_OR_RETURN(Codec codec, cut_layer(layer, layers, options));
    codecs.push_back(std::move(codec));
  }
  // In one step: the rest of a text, or what there is of it.
  const EvaluationOptions protocol{.prefix = options.prefix,
                                   .feed = texts.empty() ? 1 : static_cast<int64_t>(texts[0].tokens.size())};
  LAB_ASSIGN_OR_RETURN(const Evaluation evaluation, evaluate(host, codecs, texts, protocol, progress));
  std::vector<double> damages;
  // Rounding may leave a divergence of nothing a little below it.
  for (const CodecEvaluation& codec : evaluation.codecs) damages.push_back(std::max(0.0, codec.all.kl));
  return damages;
}

}  // namespace foldkv_lab
