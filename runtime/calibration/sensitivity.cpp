#include "runtime/calibration/sensitivity.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "runtime/calibration/divergence.h"

namespace foldkv {
namespace {

std::span<const float> row_of(const TensorView& view, int64_t row) {
  return {reinterpret_cast<const float*>(view.row(row)), static_cast<size_t>(view.column_count)};
}

}  // namespace

Sensitivity::Sensitivity(std::shared_ptr<const Model> model) : model_(std::move(model)) {
  for (std::vector<Sums>& side : sums_) side.resize(static_cast<size_t>(model_->layer_count()));
}

Status Sensitivity::add(int64_t layer, backend::Side side, const TensorView& reference, const TensorView& perturbed) {
  double sum = 0.0;
  for (int64_t row = 0; row < reference.row_count; ++row) {
    const StatusOr<double> divergence = divergence_of_logits(row_of(reference, row), row_of(perturbed, row));
    if (!divergence.ok()) {
      const std::string argument = argument_of(divergence.status());
      return with_argument(numeric_error(absl::StrCat("row ", row, ": ", divergence.status().message())), argument);
    }
    sum += *divergence;
  }
  Sums& sums = sums_[static_cast<size_t>(side)][static_cast<size_t>(layer)];
  sums.divergence += sum / static_cast<double>(reference.row_count);
  sums.rows += reference.row_count;
  ++sums.examples;
  return absl::OkStatus();
}

Status Sensitivity::merge(const Sensitivity& other) {
  if (other.model().fingerprint() != model().fingerprint()) {
    return with_argument(mismatch_error("was made for another model"), "other");
  }
  for (size_t side = 0; side < sums_.size(); ++side) {
    for (size_t layer = 0; layer < sums_[side].size(); ++layer) {
      const Sums added = other.sums_[side][layer];
      sums_[side][layer].divergence += added.divergence;
      sums_[side][layer].rows += added.rows;
      sums_[side][layer].examples += added.examples;
    }
  }
  return absl::OkStatus();
}

LayerSensitivity Sensitivity::of(int64_t layer, backend::Side side) const {
  const Sums& sums = sums_[static_cast<size_t>(side)][static_cast<size_t>(layer)];
  if (sums.examples == 0) return {};
  return {sums.divergence / static_cast<double>(sums.examples), sums.rows, sums.examples};
}

StatusOr<Profile> with_sensitivity(const Profile& profile, const Sensitivity& sensitivity,
                                   const SensitivitySource& source) {
  const Model& model = sensitivity.model();
  if (model.fingerprint() != profile.model_fingerprint) {
    return with_argument(mismatch_error("was measured on another model than the profile's"), "sensitivity");
  }
  Profile result = profile;
  ProfileSensitivity& figures = result.sensitivity.emplace();
  figures.scale = source.scale;
  figures.seed = source.seed;
  figures.text = source.text;
  int64_t examples = 0;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    figures.keys.push_back(sensitivity.of(layer, backend::Side::kKeys));
    figures.values.push_back(sensitivity.of(layer, backend::Side::kValues));
    examples += figures.keys.back().examples + figures.values.back().examples;
  }
  if (examples == 0) return with_argument(state_error("nothing has been added"), "sensitivity");
  FOLDKV_RETURN_IF_ERROR(finish_profile(result));
  return result;
}

}  // namespace foldkv
