#include "samples/lab/value_sensitivities.h"

#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

absl::StatusOr<std::vector<double>> divergences(const foldkv::Sensitivity& sensitivity, int64_t layers) {
  std::vector<double> result;
  for (int32_t layer = 0; layer < layers; ++layer) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_layer_sensitivity figures, "reading sensitivities",
                                sensitivity.of(layer, FOLDKV_VALUES));
    result.push_back(figures.divergence);
  }
  return result;
}

std::vector<TextSample> every_other(const std::vector<TextSample>& texts, size_t first) {
  std::vector<TextSample> result;
  for (size_t i = first; i < texts.size(); i += 2) result.push_back(texts[i]);
  return result;
}

}  // namespace

absl::StatusOr<ValueSensitivities> value_sensitivities(FoldkvHost& host, const std::vector<TextSample>& texts,
                                                       const SensitivityOptions& options,
                                                       absl::FunctionRef<void(int64_t)> progress) {
  if (texts.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("two halves of ", texts.size(), " texts; expected 2 texts or more"));
  }
  const int64_t layers = host.model().shape.layer_count;
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Sensitivity all, "measuring sensitivities",
                              foldkv::Sensitivity::create(host.foldkv_model()));
  ValueSensitivities result;
  int64_t runs = 0;
  SensitivityOptions half_options = options;
  for (size_t half = 0; half < 2; ++half) {
    const std::vector<TextSample> half_texts = every_other(texts, half);
    LAB_ASSIGN_OR_RETURN(
        const SensitivityMeasurement measured,
        measure_sensitivity(host, half_texts, half_options, [&](int64_t done) { progress(runs + done); }));
    LAB_ASSIGN_OR_RETURN(result.halves[half], divergences(measured.layers, layers));
    LAB_RETURN_IF_FOLDKV_ERROR("adding up sensitivities", all.merge(measured.layers));
    runs += layers * static_cast<int64_t>(half_texts.size());
    half_options.first_example += static_cast<int64_t>(half_texts.size());
  }
  LAB_ASSIGN_OR_RETURN(result.all, divergences(all, layers));
  return result;
}

}  // namespace foldkv_lab
