#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_host.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

struct CalibrationOptions {
  foldkv_calibrator_options calibrator = {};
  foldkv_solve_options solve = {};
  bool gradients = false;      // observe what errors cost too
  std::vector<double> ratios;  // bit plans, each so many times smaller than 16 bit and named "31x"; none: solve's own
};

// Runs each sample through the model with an exact sequence that the library observes, and solves for a profile.
// progress is told the tokens run so far.
[[nodiscard]] absl::StatusOr<foldkv::Profile> calibrate(FoldkvHost& host, const std::vector<TextSample>& samples,
                                                        const CalibrationOptions& options,
                                                        absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
