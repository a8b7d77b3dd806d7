#pragma once

#include "backends/interface/backend.h"
#include "backends/interface/layout.h"
#include "runtime/base/status.h"
#include "runtime/calibration/metric.h"
#include "runtime/calibration/moments.h"
#include "runtime/calibration/solve_options.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// The bands of one side of a group: the explicit ones or the one that latent_width and bits describe, cut to the
// stacked width. Options must have passed check_solve_options.
[[nodiscard]] std::vector<Band> bands_of(const SolveOptions& options, backend::Side side, int64_t key_width,
                                         int64_t stacked_width);

struct SolvedSide {
  ProfileSide side;
  double shrinkage = 0.0;  // share of the identity in the covariance, 0 to 1; 0 when there were enough rows
};

// Mean and leading eigenvectors of the covariance C of one side's rows: the closed form of BellowsKV for inputs after
// the norm (methods.md 1.2). Two rows or more. With fewer rows than coordinates C has directions in which no row lies:
// it is shrunk towards a multiple of the identity (shrinkage.h), in the metric's coordinates when there is one.
//
// With a metric M (null: none) they are those of M^(1/2) C M^(1/2): then latents are (M^(1/2) V)^T (row - mean), rows are
// rebuilt by M^(-1/2) V, and an error of one unit in any latent coordinate costs the same. May run on several threads.
[[nodiscard]] StatusOr<SolvedSide> solve_side(backend::Backend& backend, const Moments& moments, const Metric* metric,
                                              const std::vector<Band>& bands, const SolveOptions& options);

}  // namespace foldkv
