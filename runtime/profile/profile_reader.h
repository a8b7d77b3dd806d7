#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// The profile in a file's bytes (sealed_file.h, profile.fbs), which may come from anywhere: nothing in them is trusted,
// and no memory is taken for more numbers than the file holds. bytes need no alignment and are not kept.
// Errors: corrupt when the bytes are not a whole, unchanged and consistent profile file, version when they are of a
// later version.
[[nodiscard]] StatusOr<Profile> read_profile(const void* bytes, size_t size);

// A file as it stands: the profile, whose fingerprint is that of its content, and the fingerprint that the file states,
// which read_profile compares. Errors as there, but for that one.
struct ProfileFile {
  Profile profile;
  uint64_t stated_fingerprint = 0;
};
[[nodiscard]] StatusOr<ProfileFile> read_profile_file(const void* bytes, size_t size);

}  // namespace foldkv
