#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "samples/lab/measure_sensitivity.h"

namespace foldkv_lab {

// RippleKV's sensitivities of every layer's values: of all texts, and of every other text, from the first and from the
// second, which says how far they depend on the text.
struct ValueSensitivities {
  std::vector<double> all;
  std::array<std::vector<double>, 2> halves;
};

// Two texts at least. options: without groups and keys. progress is told the runs done, one layer of one text each.
[[nodiscard]] absl::StatusOr<ValueSensitivities> value_sensitivities(FoldkvHost& host,
                                                                     const std::vector<TextSample>& texts,
                                                                     const SensitivityOptions& options,
                                                                     absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
