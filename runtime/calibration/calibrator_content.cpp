#include <cstddef>
#include <utility>

#include "runtime/calibration/calibrator.h"
#include "runtime/calibration/same_model.h"

namespace foldkv {
namespace {

std::vector<MomentSums> sums_of(const std::vector<Moments>& layers) {
  std::vector<MomentSums> sums;
  for (const Moments& layer : layers) sums.push_back(layer.sums());
  return sums;
}

}  // namespace

StatusOr<CalibrationContent> Calibrator::content() const {
  FOLDKV_RETURN_IF_ERROR(failure_);
  CalibrationContent content{model_->fingerprint(), model_->name(), skip_tokens_, sample_count_, {}};
  for (size_t group = 0; group < groups_.size(); ++group) {
    const GroupMoments& moments = moments_[group];
    content.groups.push_back({groups_[group], moments.keys.sums(), moments.values.sums(),
                              sums_of(moments.key_gradients), sums_of(moments.value_gradients)});
  }
  return content;
}

StatusOr<std::shared_ptr<Calibrator>> Calibrator::restore(std::shared_ptr<backend::Backend> backend,
                                                          std::shared_ptr<const Model> model,
                                                          const CalibrationContent& content) {
  FOLDKV_RETURN_IF_ERROR(check_same_model(*model, content.model_fingerprint, content.model_name));
  CalibratorOptions options;
  options.skip_tokens = content.skip_tokens;
  for (const CalibrationGroup& group : content.groups) {
    options.groups.push_back(group.layers);
    // Before memory is taken: a few numbers of layers could ask for much more of it than the file has.
    const int64_t layers = static_cast<int64_t>(group.layers.size());
    if (layers == 0 || group.layers[0] < 0 || group.layers[0] >= model->layer_count() ||
        group.keys.width() != layers * model->layer(group.layers[0]).key_width()) {
      return corrupt_error(absl::StrCat("the calibration has a group of ", layers, " layers with rows of ",
                                        group.keys.width(), " numbers, which the model has not"));
    }
  }
  StatusOr<std::shared_ptr<Calibrator>> created = create(std::move(backend), std::move(model), options);
  if (!created.ok() || (*created)->groups_ != options.groups) {
    return corrupt_error(absl::StrCat("the calibration's layer groups are not the model's: ",
                                      created.ok() ? "they do not rise" : created.status().message()));
  }
  Calibrator& calibrator = **created;
  calibrator.sample_count_ = content.samples;
  if (!content.groups[0].key_gradients.empty()) calibrator.make_room_for_gradients();
  for (size_t group = 0; group < content.groups.size(); ++group) {
    FOLDKV_RETURN_IF_ERROR(calibrator.restore_group(group, content.groups[group]));
  }
  FOLDKV_RETURN_IF_ERROR(calibrator.check_counts());
  return created;
}

Status Calibrator::restore_group(size_t group, const CalibrationGroup& content) {
  GroupMoments& moments = moments_[group];
  FOLDKV_RETURN_IF_ERROR(moments.keys.restore(content.keys));
  FOLDKV_RETURN_IF_ERROR(moments.values.restore(content.values));
  for (size_t layer = 0; layer < moments.key_gradients.size(); ++layer) {
    FOLDKV_RETURN_IF_ERROR(moments.key_gradients[layer].restore(content.key_gradients[layer]));
    FOLDKV_RETURN_IF_ERROR(moments.value_gradients[layer].restore(content.value_gradients[layer]));
  }
  return absl::OkStatus();
}

// Every token is a row of every group and side.
Status Calibrator::check_counts() const {
  for (const GroupMoments& moments : moments_) {
    bool equal = moments.keys.count() == row_count() && moments.values.count() == row_count();
    for (size_t layer = 0; layer < moments.key_gradients.size(); ++layer) {
      equal = equal && moments.key_gradients[layer].count() == gradient_row_count() &&
              moments.value_gradients[layer].count() == gradient_row_count();
    }
    if (!equal) return corrupt_error("the calibration's groups and sides have different numbers of rows");
  }
  return absl::OkStatus();
}

}  // namespace foldkv
