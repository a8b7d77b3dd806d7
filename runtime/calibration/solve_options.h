#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/cancellation.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// How moments become a profile. Widths beyond the stacked width of a group (layers * key width) are cut to it, since a
// model's last group may have fewer layers than the others.
struct SolveOptions {
  int64_t latent_width = 0;  // 0: the key width of one layer
  int32_t bits = 4;          // of the one band that a side has without explicit bands
  int32_t scale_group = 128;
  bool rotate = false;  // Hadamard inside scale groups
  bool centred = true;
  bool use_metric = false;      // directions and variances in the metric of the observed gradients
  double metric_floor = 0.02;   // see make_metric
  std::vector<Band> key_bands;  // explicit bands instead of latent_width and bits
  std::vector<Band> value_bands;
  CorrectionRules correction;  // of every group
  std::string made_by;         // library and version, for the profile
  Cancellation cancellation = Cancellation();  // asked before and between the parts of each group
};

// Checks what does not depend on the groups. Argument errors name the field: "bits", "key_bands[1].width" ...
[[nodiscard]] Status check_solve_options(const SolveOptions& options);

}  // namespace foldkv
