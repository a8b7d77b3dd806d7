#pragma once

#include <cstddef>

#include "runtime/base/status.h"
#include "runtime/profile/calibration_content.h"

namespace foldkv {

// What a calibration file holds (sealed_file.h, calibration.fbs). The bytes may come from anywhere: nothing in them is
// trusted, and no memory is taken for more numbers than the file holds. bytes need no alignment and are not kept.
// Errors: corrupt when the bytes are not a whole, unchanged and consistent calibration file, version when they are of a
// later version.
[[nodiscard]] StatusOr<CalibrationContent> read_calibration(const void* bytes, size_t size);

}  // namespace foldkv
