#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// Argument error for the first thing in the profile that does not fit the rest, "groups[2].keys.basis" for example.
[[nodiscard]] Status check_content(const Profile& profile);

// Hash of what gives latents their meaning and of where it comes from. Figures that only describe the result (shrinkage,
// gains, divergences) do not enter: libraries that do not know them still read the file, whose checksum covers them all the same.
[[nodiscard]] uint64_t content_fingerprint(const Profile& profile);

}  // namespace foldkv
