#pragma once

#include <cstdint>

// What the reader and the writer of profile files agree on, besides sealed_file.h: a FlatBuffer of profile.fbs,
// identifier "FKVP".
namespace foldkv::profile_file {

inline constexpr int32_t kVersion = 3;  // 2: several plans, bands may end before the basis; 3: kinds, sources

}  // namespace foldkv::profile_file
