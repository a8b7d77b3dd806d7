#pragma once

#include <cstddef>
#include <cstdint>

namespace foldkv {

inline constexpr int32_t kMinBandBits = 2;  // of a band that is stored
inline constexpr int32_t kMaxBandBits = 8;
inline constexpr int32_t kHalfBits = 16;
inline constexpr int32_t kMaxCorrectionIterations = 16;
inline constexpr size_t kMaxMadeBy = 63;  // bytes
inline constexpr size_t kMaxSensitivityText = 63;  // bytes
inline constexpr size_t kMaxPlanName = 31;  // bytes
inline constexpr int64_t kMaxPlans = 256;
inline constexpr char kDefaultPlan[] = "default";  // the name of the plan that calibration makes

}  // namespace foldkv
