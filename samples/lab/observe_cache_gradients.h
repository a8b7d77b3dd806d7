#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_host.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

// Hands the calibrator what errors in the cache of a sample cost: the Fisher gradients of its first three quarters, with
// the last quarter as the tokens that read them. `sequence` holds the whole sample exactly.
[[nodiscard]] absl::Status observe_cache_gradients(FoldkvHost& host, const foldkv::Sequence& sequence,
                                                   const TextSample& sample, uint64_t seed,
                                                   foldkv::Calibrator& calibrator);

}  // namespace foldkv_lab
