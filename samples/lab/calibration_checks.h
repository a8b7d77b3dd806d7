#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "samples/lab/calibrate.h"
#include "samples/lab/model.h"

namespace foldkv_lab {

// Checks of what a user asks of a calibration that need no run of the model, so that a long one does not end in them.
// Options must have the defaults of bit plans filled in.

// Ratios of plans: 1 or more, names apart, and no higher than units of half a bit on every side of every group allow.
[[nodiscard]] absl::Status check_plans(const ModelShape& shape, const CalibrationOptions& options);

// Samples that are held out must leave samples to observe (observed: of this command and of checkpoints that are added)
// and be long enough that some of their tokens are compressed.
[[nodiscard]] absl::Status check_held_out(int64_t held_out, int64_t observed, int64_t tokens_per_sample);

// An error when rows that will be counted are fewer than 2.
[[nodiscard]] absl::Status check_rows(int64_t rows);
// A sentence when they are fewer than a group has coordinates, else empty.
[[nodiscard]] std::string note_on_rows(const ModelShape& shape, const CalibrationOptions& options, int64_t rows);

}  // namespace foldkv_lab
