#pragma once

#include <cstdint>
#include <string>
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
  bool gradients = false;          // observe what errors cost too
  std::vector<double> ratios;      // bit plans, each so many times smaller than 16 bit and named "31x"; none: solve's own
  std::string checkpoint;          // file that is gone on from when it is there, and written; empty: none
  int64_t checkpoint_samples = 8;  // that are run between writing it
};

// Runs each sample through the model with an exact sequence that the library observes. Samples that the checkpoint has
// counted already are not run again; it must be of the same samples, as far as it goes, and of the same options.
// Options of solve are checked first. progress is told the tokens run so far.
[[nodiscard]] absl::StatusOr<foldkv::Calibrator> observe_samples(FoldkvHost& host,
                                                                 const std::vector<TextSample>& samples,
                                                                 const CalibrationOptions& options,
                                                                 absl::FunctionRef<void(int64_t)> progress);

// What the checkpoints of other processes have counted, in all. They must be of the same options.
[[nodiscard]] absl::StatusOr<foldkv::Calibrator> load_checkpoints(FoldkvHost& host,
                                                                  const std::vector<std::string>& paths,
                                                                  const CalibrationOptions& options);

// Solves and plans.
[[nodiscard]] absl::StatusOr<foldkv::Profile> solve_profile(const foldkv::Calibrator& calibrator,
                                                            const CalibrationOptions& options);

// Observes the samples and solves.
[[nodiscard]] absl::StatusOr<foldkv::Profile> calibrate(FoldkvHost& host, const std::vector<TextSample>& samples,
                                                        const CalibrationOptions& options,
                                                        absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
