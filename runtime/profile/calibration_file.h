#pragma once

#include <cstdint>

// What the reader and the writer of calibration files agree on, besides sealed_file.h: a FlatBuffer of calibration.fbs,
// identifier "FKVC".
namespace foldkv::calibration_file {

inline constexpr int32_t kVersion = 1;

}  // namespace foldkv::calibration_file
