#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/interface/layout.h"
#include "runtime/base/tensor_view.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// Sums of what perturbing single layers did to predictions (RippleKV, methods.md section 2). Sums are in double
// precision.
class Sensitivity {
 public:
  explicit Sensitivity(std::shared_ptr<const Model> model);

  // One example: logits [rows][vocabulary] in f32, rows 1 or more. Numeric error of divergence_of_logits, which names
  // the row; nothing is added then.
  [[nodiscard]] Status add(int64_t layer, backend::Side side, const TensorView& reference, const TensorView& perturbed);
  // Mismatch error when other is of another model.
  [[nodiscard]] Status merge(const Sensitivity& other);

  [[nodiscard]] LayerSensitivity of(int64_t layer, backend::Side side) const;
  [[nodiscard]] const Model& model() const { return *model_; }

 private:
  struct Sums {
    double divergence = 0.0;  // over examples, of each one's mean
    int64_t rows = 0;
    int64_t examples = 0;
  };

  std::shared_ptr<const Model> model_;
  std::array<std::vector<Sums>, 2> sums_;  // by side and layer
};

// How figures came to be.
struct SensitivitySource {
  double scale = 0.0;
  uint64_t seed = 0;
  std::string text;
};

// The profile with these figures in place of any that it had. Mismatch error for another model, state error when
// nothing was measured.
[[nodiscard]] StatusOr<Profile> with_sensitivity(const Profile& profile, const Sensitivity& sensitivity,
                                                 const SensitivitySource& source);

}  // namespace foldkv
