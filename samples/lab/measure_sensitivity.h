#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

struct SensitivityOptions {
  FoldkvAttention::Options attention;  // sinks and recent tokens are left alone
  int64_t prefix = 768;                // tokens of each text that are perturbed; predictions of the rest are compared
  double scale = 0.05;
  uint64_t seed = 0;
  int64_t first_example = 0;           // number of the first text: texts of other numbers have other noise
  bool keys = false;                   // perturb keys too
  const foldkv::Profile* profile = nullptr;  // of the plan below
  std::string groups_plan;             // empty: groups are not measured
};

struct SensitivityMeasurement {
  foldkv::Sensitivity layers;
  // [group][keys, values]: KL when that alone is what the plan rebuilds; mean of the texts'. Empty without a plan.
  std::vector<double> groups;
};

// How many runs of a text's rest one text takes, the untouched one not counted.
[[nodiscard]] absl::StatusOr<int64_t> runs_of_text(const FoldkvHost& host, const SensitivityOptions& options);

// RippleKV's profiling of every layer and, with a plan, what each layer group and side under it costs alone. Every
// text's prefix runs once. progress is told the runs done.
[[nodiscard]] absl::StatusOr<SensitivityMeasurement> measure_sensitivity(FoldkvHost& host,
                                                                         const std::vector<TextSample>& texts,
                                                                         const SensitivityOptions& options,
                                                                         absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
