#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_host.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

// Tokens of a sample of that length that are fed exactly and then compressed: three quarters.
[[nodiscard]] inline int64_t held_out_prefix(int64_t length) { return 3 * length / 4; }

// The profile with the divergence of each of its plans from the full cache, measured as `evaluate` does it on samples,
// all of one length, that were not calibrated on: a prefix is compressed, the rest is fed. progress is told the runs
// done, one sample through one plan each.
[[nodiscard]] absl::StatusOr<foldkv::Profile> check_on_held_out(FoldkvHost& host, foldkv::Profile profile,
                                                                const std::vector<TextSample>& samples,
                                                                absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
