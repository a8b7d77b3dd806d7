#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/interface/backend.h"
#include "backends/interface/layout.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/calibration/layer_groups.h"
#include "runtime/calibration/metric.h"
#include "runtime/calibration/moments.h"
#include "runtime/calibration/solve_options.h"
#include "runtime/calibration/solver.h"
#include "runtime/model/model.h"
#include "runtime/profile/calibration_content.h"
#include "runtime/profile/profile.h"

namespace foldkv {

struct CalibratorOptions {
  int32_t layers_per_group = 4;
  std::vector<LayerGroup> groups;  // explicit groups instead
  int32_t skip_tokens = 4;         // first tokens of every sample left out; 0: none
};

// Observes keys and values of sample text and solves for a profile.
//
// Memory: the heap, 2 * 8 * (layers * key width)^2 bytes for each group, once 8 * (layers * key width)^2 for the widest
// and blocks of 256 rows, all taken when it is made;
// with the first gradients 2 * 8 * (key width)^2 for each layer. While solving, 4 * 8 * (layers * key width)^2 for each thread,
// with a metric 6 * 8.
// Threads: const functions may run at once, others by one thread at a time. Errors: all input is checked before the
// first row is counted, so an error changes nothing. Only after a failure of the backend the sums are no longer whole;
// every later call then returns that failure.
class Calibrator {
 public:
  // Argument errors of make_layer_groups and check_layer_groups, and "skip_tokens".
  [[nodiscard]] static StatusOr<std::shared_ptr<Calibrator>> create(std::shared_ptr<backend::Backend> backend,
                                                                    std::shared_ptr<const Model> model,
                                                                    const CalibratorOptions& options);

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const std::vector<LayerGroup>& groups() const { return groups_; }
  [[nodiscard]] int32_t skip_tokens() const { return skip_tokens_; }
  [[nodiscard]] int64_t sample_count() const { return sample_count_; }
  // Rows that entered the sums: tokens that were not skipped.
  [[nodiscard]] int64_t row_count() const { return moments_[0].keys.count(); }
  [[nodiscard]] int64_t gradient_row_count() const {
    return has_gradients() ? moments_[0].key_gradients[0].count() : 0;
  }

  // All that was observed, for a file, and a calibrator that goes on from there: what follows gives the same bits as if
  // there had been no file. content returns an earlier failure of the backend.
  // restore: the content must have passed its check. Mismatch error when it is of another model; corrupt error when its
  // groups, widths or counts fit no calibrator of this model.
  [[nodiscard]] StatusOr<CalibrationContent> content() const;
  [[nodiscard]] static StatusOr<std::shared_ptr<Calibrator>> restore(std::shared_ptr<backend::Backend> backend,
                                                                     std::shared_ptr<const Model> model,
                                                                     const CalibrationContent& content);

  // Keys (normed, before rotation) and values of all layers, host memory: views of [tokens, key width]. The tokens are
  // [first_token, first_token + tokens) of a sample, of which those below skip_tokens are left out; a sample is counted
  // with its token 0. Argument errors name "keys[3]" or "first_token"; numeric error for a number that is not finite.
  [[nodiscard]] Status observe(std::span<const TensorView> keys, std::span<const TensorView> values,
                               int64_t first_token);

  // What errors of a sample's keys and values cost, for solve with use_metric: gradients of a loss with respect to
  // cached keys (normed, before rotation) and values of the tokens [first_token, first_token + tokens), shaped as in
  // observe. Each token's gradient g adds g g^T to the metric of its layer, so that e^T M e is the mean square change of
  // the loss. With labels drawn from the model's own predictions that is the Fisher metric, and half of it the
  // divergence that a small error e causes. Tokens below skip_tokens are left out. Errors as in observe.
  [[nodiscard]] Status observe_gradients(std::span<const TensorView> keys, std::span<const TensorView> values,
                                         int64_t first_token);

  // Adds the rows of other. Mismatch error when the models, groups or skip_tokens differ.
  [[nodiscard]] Status merge(const Calibrator& other);

  // Fewer rows than a group has coordinates are made up for by shrinkage, which the profile names (solve_side).
  // Argument errors of check_solve_options; state error with fewer than 2 rows, or when the metric is asked for and no
  // gradients were observed.
  [[nodiscard]] StatusOr<Profile> solve(const SolveOptions& options) const;

  // What was observed last is there in part only: state error from now on.
  void spoil() {
    if (failure_.ok()) failure_ = state_error("the calibrator holds a part of some tokens: a commit has failed");
  }

 private:
  struct GroupMoments {
    Moments keys;
    Moments values;
    std::vector<Moments> key_gradients;  // of its layers
    std::vector<Moments> value_gradients;

    [[nodiscard]] const Moments& rows(backend::Side side) const {
      return side == backend::Side::kKeys ? keys : values;
    }
    [[nodiscard]] std::vector<Moments>& gradients(backend::Side side) {
      return side == backend::Side::kKeys ? key_gradients : value_gradients;
    }
    [[nodiscard]] const std::vector<Moments>& gradients(backend::Side side) const {
      return side == backend::Side::kKeys ? key_gradients : value_gradients;
    }
  };

  Calibrator(std::shared_ptr<backend::Backend> backend, std::shared_ptr<const Model> model,
             std::vector<LayerGroup> groups, int32_t skip_tokens);

  // Counts rows of a sample that are not skipped; a failure is kept.
  [[nodiscard]] Status add_rows(Moments& moments, const float* rows, int64_t count, int64_t first_token);
  [[nodiscard]] Status add_layers(const LayerGroup& group, Moments& target, std::span<const TensorView> layers,
                                  int64_t first_token);
  [[nodiscard]] StatusOr<Metric> metric(size_t group, backend::Side side, double floor) const;
  [[nodiscard]] StatusOr<SolvedSide> solve_side_of(size_t group, backend::Side side, const std::vector<Band>& bands,
                                                   const SolveOptions& options) const;
  [[nodiscard]] bool has_gradients() const { return !moments_[0].key_gradients.empty(); }
  void make_room_for_gradients();
  [[nodiscard]] Status restore_group(size_t group, const CalibrationGroup& content);
  [[nodiscard]] Status check_counts() const;
  [[nodiscard]] Status merge_group(GroupMoments& target, const GroupMoments& other);
  [[nodiscard]] Status check_solvable(const SolveOptions& options) const;
  [[nodiscard]] Profile empty_profile(const SolveOptions& options) const;

  std::shared_ptr<backend::Backend> backend_;
  std::shared_ptr<const Model> model_;
  std::vector<LayerGroup> groups_;
  int32_t skip_tokens_;
  std::vector<GroupMoments> moments_;  // of groups_
  int64_t sample_count_ = 0;
  MomentsScratch scratch_;
  std::vector<float> stacked_;  // rows of one block of the widest group
  Status failure_;              // sums may hold a part of some tokens
};

}  // namespace foldkv
