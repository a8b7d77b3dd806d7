#pragma once

#include <cstddef>
#include <cstdint>

// Bounds on sizes that come from outside. With them products of a few sizes inside the library cannot overflow.
namespace foldkv {

inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeadSize = 512;
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;  // heads * head size, hidden size, layers * key width of a group
inline constexpr size_t kMaxModelName = 127;            // bytes

}  // namespace foldkv
