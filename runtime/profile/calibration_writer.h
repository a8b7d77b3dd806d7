#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/profile/calibration_content.h"

namespace foldkv {

// The bytes of the calibration file (sealed_file.h, calibration.fbs). Equal contents give equal bytes.
// Internal error when the content fails its check. Unsupported error when it is too large for one file (2 GiB).
[[nodiscard]] StatusOr<std::vector<uint8_t>> write_calibration(const CalibrationContent& content);

}  // namespace foldkv
