#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_host.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

// What a calibration has observed so far: a file of 8 letters, a hash of the samples (8 bytes, little-endian) and what
// foldkv_calibrator_save wrote.
struct Checkpoint {
  foldkv::Calibrator calibrator;
  uint64_t samples_hash = 0;
};

// Of samples in their order, and of whether gradients of them are observed.
[[nodiscard]] uint64_t hash_of_samples(std::span<const TextSample> samples, bool gradients);

[[nodiscard]] absl::Status save_checkpoint(const foldkv::Calibrator& calibrator, uint64_t samples_hash,
                                           const std::string& path);
// An error when the file is none, has been changed, or is of another model.
[[nodiscard]] absl::StatusOr<Checkpoint> load_checkpoint(FoldkvHost& host, const std::string& path);

}  // namespace foldkv_lab
