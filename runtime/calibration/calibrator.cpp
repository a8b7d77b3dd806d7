#include "runtime/calibration/calibrator.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "runtime/base/check_range.h"
#include "runtime/calibration/observed_rows.h"
#include "runtime/calibration/run_tasks.h"
#include "runtime/calibration/same_model.h"
#include "runtime/profile/limits.h"

namespace foldkv {
namespace {

constexpr int64_t kFewestRows = 2;  // one has no variance
constexpr int64_t kMaxFirstToken = int64_t{1} << 40;

int64_t stacked_width(const Model& model, const LayerGroup& group) {
  return std::ssize(group) * model.layer(group[0]).key_width();
}

int64_t max_stacked_width(const Model& model, const std::vector<LayerGroup>& groups) {
  int64_t width = 0;
  for (const LayerGroup& group : groups) width = std::max(width, stacked_width(model, group));
  return width;
}

}  // namespace

StatusOr<std::shared_ptr<Calibrator>> Calibrator::create(std::shared_ptr<backend::Backend> backend,
                                                         std::shared_ptr<const Model> model,
                                                         const CalibratorOptions& options) {
  if (options.skip_tokens < 0) {
    return argument_error("skip_tokens",
                          absl::StrCat("skip_tokens: got ", options.skip_tokens, ", expected 0 or more"));
  }
  FOLDKV_ASSIGN_OR_RETURN(std::vector<LayerGroup> groups, options.groups.empty()
                                                              ? make_layer_groups(*model, options.layers_per_group)
                                                              : check_layer_groups(*model, options.groups));
  return std::shared_ptr<Calibrator>(
      new Calibrator(std::move(backend), std::move(model), std::move(groups), options.skip_tokens));
}

Calibrator::Calibrator(std::shared_ptr<backend::Backend> backend, std::shared_ptr<const Model> model,
                       std::vector<LayerGroup> groups, int32_t skip_tokens)
    : backend_(std::move(backend)),
      model_(std::move(model)),
      groups_(std::move(groups)),
      skip_tokens_(skip_tokens),
      scratch_(max_stacked_width(*model_, groups_)),
      stacked_(static_cast<size_t>(Moments::kBlockRows * max_stacked_width(*model_, groups_))) {
  moments_.reserve(groups_.size());
  for (const LayerGroup& group : groups_) {
    const int64_t width = stacked_width(*model_, group);
    moments_.push_back({Moments(width), Moments(width), {}, {}});
  }
}

Status Calibrator::observe(std::span<const TensorView> keys, std::span<const TensorView> values, int64_t first_token) {
  FOLDKV_RETURN_IF_ERROR(failure_);
  FOLDKV_RETURN_IF_ERROR(check_range("first_token", first_token, 0, kMaxFirstToken));
  const int64_t tokens = keys.empty() ? 0 : keys[0].row_count;  // that there are keys is checked first
  FOLDKV_RETURN_IF_ERROR(check_observed("keys", keys, *model_, tokens));
  FOLDKV_RETURN_IF_ERROR(check_observed("values", values, *model_, tokens));
  for (size_t group = 0; group < groups_.size(); ++group) {
    FOLDKV_RETURN_IF_ERROR(add_layers(groups_[group], moments_[group].keys, keys, first_token));
    FOLDKV_RETURN_IF_ERROR(add_layers(groups_[group], moments_[group].values, values, first_token));
  }
  if (first_token == 0) ++sample_count_;
  return absl::OkStatus();
}

Status Calibrator::observe_gradients(std::span<const TensorView> keys, std::span<const TensorView> values,
                                     int64_t first_token) {
  FOLDKV_RETURN_IF_ERROR(failure_);
  FOLDKV_RETURN_IF_ERROR(check_range("first_token", first_token, 0, kMaxFirstToken));
  const int64_t tokens = keys.empty() ? 0 : keys[0].row_count;
  FOLDKV_RETURN_IF_ERROR(check_observed("keys", keys, *model_, tokens));
  FOLDKV_RETURN_IF_ERROR(check_observed("values", values, *model_, tokens));
  make_room_for_gradients();
  for (size_t group = 0; group < groups_.size(); ++group) {
    for (size_t index = 0; index < groups_[group].size(); ++index) {
      const LayerGroup alone = {groups_[group][index]};
      FOLDKV_RETURN_IF_ERROR(add_layers(alone, moments_[group].key_gradients[index], keys, first_token));
      FOLDKV_RETURN_IF_ERROR(add_layers(alone, moments_[group].value_gradients[index], values, first_token));
    }
  }
  return absl::OkStatus();
}

Status Calibrator::add_rows(Moments& moments, const float* rows, int64_t count, int64_t first_token) {
  const int64_t skipped = std::clamp<int64_t>(skip_tokens_ - first_token, 0, count);
  failure_ = moments.observe(*backend_, rows + skipped * moments.width(), count - skipped, scratch_);
  return failure_;
}

Status Calibrator::add_layers(const LayerGroup& group, Moments& target, std::span<const TensorView> layers,
                              int64_t first_token) {
  const int64_t tokens = layers[0].row_count;
  for (int64_t first = 0; first < tokens; first += Moments::kBlockRows) {
    const int64_t count = std::min(Moments::kBlockRows, tokens - first);
    stack_rows(layers, group, first, count, stacked_.data());
    FOLDKV_RETURN_IF_ERROR(add_rows(target, stacked_.data(), count, first_token + first));
  }
  return absl::OkStatus();
}

Status Calibrator::merge(const Calibrator& other) {
  FOLDKV_RETURN_IF_ERROR(failure_);
  FOLDKV_RETURN_IF_ERROR(other.failure_);
  if (&other == this) return argument_error("other", "other: got the calibrator itself");
  FOLDKV_RETURN_IF_ERROR(check_same_model(*model_, other.model_->fingerprint(), other.model_->name()));
  if (groups_ != other.groups_) return mismatch_error("the calibrators have different layer groups");
  if (skip_tokens_ != other.skip_tokens_) {
    return mismatch_error(
        absl::StrCat("the calibrators have different skip_tokens: ", skip_tokens_, " and ", other.skip_tokens_));
  }
  if (other.has_gradients()) make_room_for_gradients();
  for (size_t group = 0; group < groups_.size(); ++group) {
    failure_ = merge_group(moments_[group], other.moments_[group]);
    FOLDKV_RETURN_IF_ERROR(failure_);
  }
  sample_count_ += other.sample_count_;
  return absl::OkStatus();
}

void Calibrator::make_room_for_gradients() {
  if (has_gradients()) return;
  for (size_t group = 0; group < groups_.size(); ++group) {
    const Moments none(model_->layer(groups_[group][0]).key_width());
    moments_[group].key_gradients.assign(groups_[group].size(), none);
    moments_[group].value_gradients.assign(groups_[group].size(), none);
  }
}

Status Calibrator::merge_group(GroupMoments& target, const GroupMoments& other) {
  FOLDKV_RETURN_IF_ERROR(target.keys.merge(*backend_, other.keys, scratch_));
  FOLDKV_RETURN_IF_ERROR(target.values.merge(*backend_, other.values, scratch_));
  for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
    for (size_t index = 0; index < other.gradients(side).size(); ++index) {
      FOLDKV_RETURN_IF_ERROR(target.gradients(side)[index].merge(*backend_, other.gradients(side)[index], scratch_));
    }
  }
  return absl::OkStatus();
}

Status Calibrator::check_solvable(const SolveOptions& options) const {
  FOLDKV_RETURN_IF_ERROR(failure_);
  FOLDKV_RETURN_IF_ERROR(check_solve_options(options));
  for (size_t group = 0; group < groups_.size(); ++group) {
    const int64_t width = moments_[group].keys.width();
    FOLDKV_RETURN_IF_ERROR(check_range("correction_rank", options.correction.rank, 0, width));
  }
  if (row_count() < kFewestRows) {
    return state_error(absl::StrCat("got ", row_count(), " calibration rows, expected ", kFewestRows, " or more"));
  }
  if (options.use_metric && !has_gradients()) {
    return state_error("use_metric needs gradients: observe_gradients was not called");
  }
  return absl::OkStatus();
}

Profile Calibrator::empty_profile(const SolveOptions& options) const {
  Profile profile;
  profile.model_fingerprint = model_->fingerprint();
  profile.model_name = model_->name();
  profile.layer_count = static_cast<int32_t>(model_->layer_count());
  profile.centred = options.centred;
  profile.calibration_tokens = row_count();
  profile.calibration_samples = sample_count_;
  profile.made_by = options.made_by;
  Plan plan;
  plan.name = kDefaultPlan;
  for (const LayerGroup& layers : groups_) {
    ProfileGroup group;
    group.layers = layers;
    group.key_width = model_->layer(layers[0]).key_width();
    group.scale_group = options.scale_group;
    group.rotated = options.rotate;
    if (options.correction.rank > 0) group.correction = options.correction;
    plan.groups.push_back({bands_of(options, backend::Side::kKeys, group.key_width, group.stacked_width()),
                           bands_of(options, backend::Side::kValues, group.key_width, group.stacked_width())});
    profile.groups.push_back(std::move(group));
  }
  profile.plans.push_back(std::move(plan));
  return profile;
}

StatusOr<Metric> Calibrator::metric(size_t group, backend::Side side, double floor) const {
  std::vector<std::vector<double>> blocks;
  for (const Moments& gradients : moments_[group].gradients(side)) {
    FOLDKV_ASSIGN_OR_RETURN(Covariance second_moment, gradients.covariance(*backend_, false));
    blocks.push_back(std::move(second_moment.matrix));
  }
  return make_metric(blocks, model_->layer(groups_[group][0]).key_width(), floor);
}

StatusOr<SolvedSide> Calibrator::solve_side_of(size_t group, backend::Side side, const std::vector<Band>& bands,
                                               const SolveOptions& options) const {
  const Moments& rows = moments_[group].rows(side);
  if (!options.use_metric) return solve_side(*backend_, rows, nullptr, bands, options);
  FOLDKV_ASSIGN_OR_RETURN(const Metric found, metric(group, side, options.metric_floor));
  return solve_side(*backend_, rows, &found, bands, options);
}

StatusOr<Profile> Calibrator::solve(const SolveOptions& options) const {
  FOLDKV_RETURN_IF_ERROR(check_solvable(options));
  Profile profile = empty_profile(options);
  const int64_t task_count = 2 * std::ssize(groups_);
  std::vector<StatusOr<SolvedSide>> sides(static_cast<size_t>(task_count));
  std::atomic<bool> out_of_memory{false};
  run_tasks(task_count, backend_->thread_count(), [&](int64_t task) {
    const auto index = static_cast<size_t>(task / 2);
    const backend::Side side = task % 2 == 0 ? backend::Side::kKeys : backend::Side::kValues;
    const GroupPlan& plan = profile.plans[0].groups[index];
    try {
      const std::vector<Band>& bands = side == backend::Side::kKeys ? plan.keys : plan.values;
      sides[static_cast<size_t>(task)] = solve_side_of(index, side, bands, options);
    } catch (const std::bad_alloc&) {  // must not leave its thread
      out_of_memory = true;
    }
  });
  if (out_of_memory) return memory_error("the host has not enough memory to solve the layer groups");
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    FOLDKV_ASSIGN_OR_RETURN(SolvedSide keys, std::move(sides[2 * index]));
    FOLDKV_ASSIGN_OR_RETURN(SolvedSide values, std::move(sides[2 * index + 1]));
    profile.shrinkage = std::max({profile.shrinkage, keys.shrinkage, values.shrinkage});
    profile.groups[index].keys = std::move(keys.side);
    profile.groups[index].values = std::move(values.side);
  }
  FOLDKV_RETURN_IF_ERROR(finish_profile(profile));
  return profile;
}

}  // namespace foldkv
